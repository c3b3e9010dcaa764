//! Accounts and transfers: the module that the demo, the load generator and the benchmarks drive.

use spacetimedb::{reducer, table, ReducerContext, Table};

#[table(accessor = accounts, public)]
pub struct Account {
    #[primary_key]
    #[index(hash)]
    pub id: u32,
    pub balance: i64,
}

/// Replaces every account by `n` new ones, ids `0..n`, each with `initial_balance`.
#[reducer]
pub fn seed(ctx: &ReducerContext, n: u32, initial_balance: i64) {
    let accounts = ctx.db.accounts();
    for account in accounts.iter() {
        accounts.delete(account);
    }
    for id in 0..n {
        accounts.insert(Account {
            id,
            balance: initial_balance,
        });
    }
    log::info!("seeded {n} accounts with a balance of {initial_balance} each");
}

/// Moves `amount` between two accounts; an error undoes everything.
#[reducer]
pub fn transfer(ctx: &ReducerContext, from: u32, to: u32, amount: i64) -> Result<(), String> {
    if from == to {
        return Err("same_account".into());
    }
    if amount <= 0 {
        return Err("non_positive_amount".into());
    }
    let by_id = ctx.db.accounts().id();
    let (Some(source), Some(destination)) = (by_id.find(from), by_id.find(to)) else {
        return Err("account_missing".into());
    };
    if source.balance < amount {
        return Err("insufficient_funds".into());
    }
    by_id.update(Account {
        balance: source.balance - amount,
        ..source
    });
    by_id.update(Account {
        balance: destination.balance + amount,
        ..destination
    });
    Ok(())
}
