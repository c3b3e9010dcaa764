//! A server whose only module is the transfer workload, written in Rust instead of WebAssembly: for measuring the
//! server alone, with the load generator as its client.
//!
//! ```text
//! cargo run --release -p lightcone-server --example transfer_server -- /tmp/data 127.0.0.1:3000
//! curl -X PUT http://127.0.0.1:3000/v1/database/transfer --data module
//! ```

use std::sync::Arc;

use lightcone_database::Engines;
use lightcone_engine::{Datastore, RowBuffer};
use lightcone_host::{
    HostEnv, HostError, InstanceOptions, LoadedModule, ModuleEngine, ModuleInstance,
    OpenTransaction, ProcedureCall, ProcedureOutcome, ReducerCall, ReducerOutcome, Transactions,
};
use lightcone_schema::raw::{
    FunctionVisibility, RawConstraintData, RawConstraintDefV10, RawIndexAlgorithm, RawIndexDefV10,
    RawModuleDefV10, RawModuleDefV10Section as Section, RawReducerDefV10, RawTableDefV10,
    RawUniqueConstraintData,
};
use lightcone_schema::{RawModuleDef, TableAccess, TableKind};
use lightcone_server::{Server, ServerOptions};
use lightcone_types::bsatn::Encode as _;
use lightcone_types::{AlgebraicType, ColId, ProductType, TypeRef, Typespace};

struct TransferEngine;
struct TransferModule(Vec<u8>);
struct TransferInstance {
    source: RowBuffer,
    destination: RowBuffer,
    generated: Vec<u8>,
}

impl ModuleEngine for TransferEngine {
    fn name(&self) -> &'static str {
        "native transfer"
    }

    fn load(&self, _: &[u8], _: &InstanceOptions) -> Result<Box<dyn LoadedModule>, HostError> {
        Ok(Box::new(TransferModule(definition())))
    }
}

impl LoadedModule for TransferModule {
    fn describe(&self) -> &[u8] {
        &self.0
    }

    fn instantiate(&self, _: HostEnv) -> Result<Box<dyn ModuleInstance>, HostError> {
        Ok(Box::new(TransferInstance {
            source: RowBuffer::default(),
            destination: RowBuffer::default(),
            generated: Vec::new(),
        }))
    }
}

impl ModuleInstance for TransferInstance {
    fn call_procedure(
        &mut self,
        _: &mut dyn Transactions,
        call: &ProcedureCall<'_>,
    ) -> ProcedureOutcome {
        ProcedureOutcome::Failed {
            message: format!("there is no procedure or HTTP handler {}", call.call.name),
        }
    }

    fn call_reducer(
        &mut self,
        transaction: OpenTransaction<'_>,
        call: &ReducerCall<'_>,
    ) -> ReducerOutcome {
        let datastore = transaction.into_datastore();
        let run = match &**call.name {
            "seed" => self.seed(datastore, call.args),
            _ => self.transfer(datastore, call.args),
        };
        match run {
            Ok(()) => ReducerOutcome::Ok,
            Err(text) => ReducerOutcome::UserError(text),
        }
    }

    fn is_poisoned(&self) -> bool {
        false
    }
}

impl TransferInstance {
    fn seed(&mut self, datastore: &mut Datastore, args: &[u8]) -> Result<(), String> {
        let table = datastore.table_id_from_name("accounts").ok_or("no table")?;
        datastore.clear(table).map_err(|error| error.to_string())?;
        let count = u32::from_le_bytes(*args.first_chunk().ok_or("arguments")?);
        let mut row = [0; 12];
        row[4..].copy_from_slice(&args[4..12]);
        for id in 0..count {
            row[..4].copy_from_slice(&id.to_le_bytes());
            datastore
                .insert(table, &row, &mut self.generated)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn transfer(&mut self, datastore: &mut Datastore, args: &[u8]) -> Result<(), String> {
        let table = datastore.table_id_from_name("accounts").ok_or("no table")?;
        let index = datastore
            .index_id_from_name("accounts_id_idx_hash")
            .ok_or("no index")?;
        let (from, to) = (&args[..4], &args[4..8]);
        let amount = i64::from_le_bytes(*args[8..].first_chunk().ok_or("arguments")?);
        self.source.clear();
        self.destination.clear();
        let text = |error: lightcone_engine::DatastoreError| error.to_string();
        datastore
            .index_scan_point(index, from, &mut self.source)
            .map_err(text)?;
        datastore
            .index_scan_point(index, to, &mut self.destination)
            .map_err(text)?;
        for (rows, change) in [(&self.source, -amount), (&self.destination, amount)] {
            let mut row = *rows.bytes.first_chunk::<12>().ok_or("account_missing")?;
            let balance = i64::from_le_bytes(*row[4..].first_chunk().expect("eight bytes"));
            row[4..].copy_from_slice(&(balance + change).to_le_bytes());
            datastore
                .update(table, index, &row, &mut self.generated)
                .map_err(text)?;
        }
        Ok(())
    }
}

fn definition() -> Vec<u8> {
    let product = |fields: &[(&'static str, AlgebraicType)]| -> ProductType {
        match AlgebraicType::product(fields.iter().cloned()) {
            AlgebraicType::Product(product) => product,
            _ => unreachable!("product() makes products"),
        }
    };
    let reducer = |name: &str, params: ProductType| RawReducerDefV10 {
        source_name: name.into(),
        params,
        visibility: FunctionVisibility::ClientCallable,
        ok_return_type: AlgebraicType::unit(),
        err_return_type: AlgebraicType::String,
    };
    let (id, balance) = (AlgebraicType::U32, AlgebraicType::I64);
    let accounts = RawTableDefV10 {
        source_name: "accounts".into(),
        product_type_ref: TypeRef(0),
        primary_key: vec![ColId(0)],
        indexes: vec![RawIndexDefV10 {
            source_name: Some("accounts_id_idx_hash".into()),
            accessor_name: Some("id".into()),
            algorithm: RawIndexAlgorithm::Hash(vec![ColId(0)]),
        }],
        constraints: vec![RawConstraintDefV10 {
            source_name: None,
            data: RawConstraintData::Unique(RawUniqueConstraintData {
                columns: vec![ColId(0)],
            }),
        }],
        sequences: vec![],
        table_type: TableKind::User,
        table_access: TableAccess::Public,
        default_values: vec![],
        is_event: false,
    };
    let row = AlgebraicType::product([("id", id.clone()), ("balance", balance.clone())]);
    let sections = vec![
        Section::Typespace(Typespace { types: vec![row] }),
        Section::Tables(vec![accounts]),
        Section::Reducers(vec![
            reducer(
                "seed",
                product(&[("n", id.clone()), ("initial_balance", balance.clone())]),
            ),
            reducer(
                "transfer",
                product(&[("from", id.clone()), ("to", id), ("amount", balance)]),
            ),
        ]),
    ];
    RawModuleDef::V10(RawModuleDefV10 { sections }).to_vec()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let data_dir = arguments
        .next()
        .ok_or("the first argument is the data directory")?;
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:3000".into());
    let engines = Engines {
        wasm: Arc::new(TransferEngine),
        js: None,
    };
    let mut options = ServerOptions::new(address.parse()?, &data_dir, engines);
    options.node.jwt_key_dir = Some(std::path::Path::new(&data_dir).join("keys"));
    let handle = Server::bind(options).await?;
    println!("listening on {}", handle.local_addr());
    tokio::signal::ctrl_c().await?;
    handle.shutdown().await;
    Ok(())
}
