//! Table schemas from definitions (02 §10): the definition's objects with the ids a database gives them.

use lightcone_types::{
    AlgebraicType, ColId, ConstraintId, IndexId, ScheduleId, SequenceId, TableId,
};

use crate::def::{TableDef, ViewDef};
use crate::table::*;

impl TableDef {
    /// The table as the engine holds it. Ids are drawn in creation order: table, schedule, then each
    /// index, constraint and sequence (02 §10.1).
    pub fn to_schema(&self, ids: &mut SequentialIds) -> TableSchema {
        let id = SequentialIds::take(&mut ids.table, TableId);
        let columns = self.columns.iter().map(|column| ColumnSchema {
            name: column.name.clone(),
            accessor: Some(column.source_name.clone()),
            ty: column.ty.clone(),
        });
        let schedule = self.schedule.as_ref().map(|schedule| ScheduleSchema {
            id: SequentialIds::take(&mut ids.schedule, ScheduleId),
            name: schedule.name.clone(),
            function_name: schedule.function_name.clone(),
            at_column: schedule.at_column,
        });
        let indexes = self.indexes.iter().map(|index| IndexSchema {
            id: SequentialIds::take(&mut ids.index, IndexId),
            name: index.name.clone(),
            accessor: Some(index.source_name.clone()),
            algorithm: index.algorithm.clone(),
            unique: index.unique,
        });
        let indexes = indexes.collect();
        let constraints = self.constraints.iter().map(|constraint| ConstraintSchema {
            id: SequentialIds::take(&mut ids.constraint, ConstraintId),
            name: constraint.name.clone(),
            columns: constraint.columns.clone(),
        });
        let constraints = constraints.collect();
        let sequences = self.sequences.iter().map(|sequence| SequenceSchema {
            id: SequentialIds::take(&mut ids.sequence, SequenceId),
            name: sequence.name.clone(),
            column: sequence.column,
            start: 1,
            min_value: 1,
            max_value: i128::MAX,
            increment: 1,
        });
        TableSchema {
            accessor: Some(self.source_name.clone()),
            primary_key: self.primary_key,
            indexes,
            constraints,
            sequences: sequences.collect(),
            schedule,
            outbox: self.outbox.clone(),
            access: self.access,
            is_event: self.is_event,
            ..TableSchema::plain(id, self.name.clone(), columns.collect())
        }
    }
}

impl ViewDef {
    /// The table that holds a view's rows (02 §10.3). `keyed` says that the module is of version 10,
    /// in which a view's primary key takes effect. The view's own id is drawn elsewhere: it is 0 here.
    pub fn to_backing_schema(&self, keyed: bool, ids: &mut SequentialIds) -> TableSchema {
        let id = SequentialIds::take(&mut ids.table, TableId);
        let arg_hash = ColumnSchema {
            name: "arg_hash".to_owned(),
            accessor: None,
            ty: AlgebraicType::HASH,
        };
        let columns = self.columns.iter().map(|column| ColumnSchema {
            name: column.name.clone(),
            accessor: Some(column.source_name.clone()),
            ty: column.ty.clone(),
        });
        let mut indexes = vec![IndexSchema {
            id: SequentialIds::take(&mut ids.index, IndexId),
            name: format!("{}_arg_hash_idx_btree", self.name),
            accessor: None,
            algorithm: IndexAlgorithm::BTree(vec![ColId(0)]),
            unique: false,
        }];
        let mut constraints = Vec::new();
        if let Some(key) = self.primary_key.filter(|_| keyed) {
            let key_name = &self.columns[key.index()].name;
            // `arg_hash` goes before the view's own columns.
            let columns = vec![ColId(0), ColId(key.0.saturating_add(1))];
            indexes.push(IndexSchema {
                id: SequentialIds::take(&mut ids.index, IndexId),
                name: format!("{}_arg_hash_{key_name}_idx_btree", self.name),
                accessor: None,
                algorithm: IndexAlgorithm::BTree(columns.clone()),
                unique: true,
            });
            constraints.push(ConstraintSchema {
                id: SequentialIds::take(&mut ids.constraint, ConstraintId),
                name: format!("{}_arg_hash_{key_name}_key", self.name),
                columns,
            });
        }
        let columns = std::iter::once(arg_hash).chain(columns).collect();
        TableSchema {
            accessor: Some(self.source_name.clone()),
            indexes,
            constraints,
            access: self.access(),
            view: Some(ViewSchema {
                id: 0,
                is_anonymous: self.is_anonymous,
            }),
            ..TableSchema::plain(id, self.name.clone(), columns)
        }
    }
}
