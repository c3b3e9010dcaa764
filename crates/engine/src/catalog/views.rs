//! Views in the catalog: each has a row of its own and a backing table for its rows (02 §10.3).

use std::sync::Arc;

use lightcone_schema::{ModuleDef, RawVersion, SequentialIds, TableSchema, ViewDef};
use lightcone_types::bsatn::Encode;
use lightcone_types::AlgebraicType;

use super::without_ids;
use crate::datastore::Datastore;
use crate::error::Result;
use crate::system as st;
use crate::table_state::TableState;

impl Datastore {
    /// Creates the backing tables of those views of a definition that have none, in order of names (02 §13). Returns how many
    /// that were: none, unless the database is new or was made by a version that ran no views.
    ///
    /// # Errors
    /// A name is in use: validation and the catalog disagree.
    pub fn create_views(&mut self, def: &ModuleDef) -> Result<usize> {
        let mut missing: Vec<&ViewDef> = def.views.iter().collect();
        missing.retain(|view| self.view_table(&view.name).is_none());
        missing.sort_by(|a, b| a.name.cmp(&b.name));
        let has_keys = def.version == RawVersion::V10;
        for view in &missing {
            self.create_view(view, has_keys)?;
        }
        Ok(missing.len())
    }

    /// The backing table of the view of this canonical name.
    pub fn view_table(&self, name: &str) -> Option<&Arc<TableSchema>> {
        let schema = self.schema(self.table_id_from_name(name)?)?;
        (schema.view.is_some() && schema.name == name).then_some(schema)
    }

    pub(crate) fn create_view(&mut self, def: &ViewDef, has_keys: bool) -> Result<()> {
        let schema = def.to_backing_schema(has_keys, &mut SequentialIds::default());
        let mut schema = without_ids(schema);
        self.put_table(&mut schema, &[])?;
        // Public whatever the view's access is; the table's says it (02 §10.3).
        let (name, table, is_public) = (&schema.name, Some(schema.id), true);
        let view = (0_u32, name, table, is_public, def.is_anonymous).to_vec();
        let view_id = self.put_with_id(st::ST_VIEW_ID, 0, &view)?;
        if let Some(view) = &mut schema.view {
            view.id = view_id;
        }
        self.put_view_parts(view_id, def)?;
        self.create(TableState::new(Arc::new(schema), |sequence| sequence.start));
        Ok(())
    }

    /// The view's own columns and parameters. Their types are not resolved (02 §10.3).
    pub(crate) fn put_view_parts(&mut self, view: u32, def: &ViewDef) -> Result<()> {
        let declared = match def.params_typespace.get(def.row_type) {
            Some(AlgebraicType::Product(product)) => &product.elements[..],
            _ => &[],
        };
        for (position, column) in def.columns.iter().enumerate() {
            let ty = declared.get(position).map(|field| &field.algebraic_type);
            let ty = ty.unwrap_or(&column.ty);
            let row = (view, position as u16, &column.name, ty.to_vec()).to_vec();
            self.put(st::ST_VIEW_COLUMN_ID, &row)?;
        }
        for (position, param) in def.params.elements.iter().enumerate() {
            let name = param.name().unwrap_or_default();
            let ty = param.algebraic_type.to_vec();
            let row = (view, position as u16, name, ty).to_vec();
            self.put(st::ST_VIEW_PARAM_ID, &row)?;
        }
        Ok(())
    }
}
