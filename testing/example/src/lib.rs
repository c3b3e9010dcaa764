//! A module with unit tests: reducers are called as plain functions, and each test has tables of its own.

use spacetimedb::{
    procedure, reducer, table, view, AnonymousViewContext, Identity, ProcedureContext, Query,
    ReducerContext, ScheduleAt, Table, Timestamp,
};

#[table(accessor = accounts, public)]
pub struct Account {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    #[unique]
    pub owner: Identity,
    #[index(btree)]
    pub balance: u64,
    pub opened: Timestamp,
}

#[reducer]
pub fn open(ctx: &ReducerContext) -> Result<(), String> {
    let account = Account {
        id: 0,
        owner: ctx.sender(),
        balance: 100,
        opened: ctx.timestamp,
    };
    let opened = ctx.db.accounts().try_insert(account);
    opened.map(drop).map_err(|error| error.to_string())
}

#[reducer]
pub fn pay(ctx: &ReducerContext, to: u64, amount: u64) -> Result<(), String> {
    let accounts = ctx.db.accounts();
    let payee = accounts.id().find(to).ok_or("no such account")?;
    accounts.id().update(Account {
        balance: payee.balance + amount,
        ..payee
    });
    let payer = accounts.owner().find(ctx.sender()).ok_or("no account")?;
    // The payee's row is written already: an error takes it back.
    let balance = payer.balance.checked_sub(amount).ok_or("not enough")?;
    accounts.id().update(Account { balance, ..payer });
    Ok(())
}

/// A row has interest paid, once or again and again.
#[table(accessor = interests, scheduled(pay_interest))]
pub struct Interest {
    #[primary_key]
    #[auto_inc]
    pub scheduled_id: u64,
    pub scheduled_at: ScheduleAt,
    pub percent: u64,
}

#[reducer]
pub fn pay_interest(ctx: &ReducerContext, interest: Interest) -> Result<(), String> {
    if ctx.sender() != ctx.database_identity() {
        return Err("only the database pays interest".to_owned());
    }
    if interest.percent > 100 {
        return Err("that is too much".to_owned());
    }
    let accounts = ctx.db.accounts();
    for account in accounts.iter().collect::<Vec<_>>() {
        let balance = account.balance + account.balance * interest.percent / 100;
        accounts.id().update(Account { balance, ..account });
    }
    Ok(())
}

/// A row has the sum of all accounts noted, a minute later.
#[table(accessor = audits, scheduled(audit))]
pub struct Audit {
    #[primary_key]
    #[auto_inc]
    pub scheduled_id: u64,
    pub scheduled_at: ScheduleAt,
}

#[table(accessor = sums)]
pub struct Sum {
    pub audit: u64,
    pub balance: u64,
    pub noted: Timestamp,
}

#[procedure]
pub fn audit(ctx: &mut ProcedureContext, due: Audit) {
    let later = ctx.timestamp + spacetimedb::TimeDuration::from_micros(60_000_000);
    ctx.sleep_until(later);
    ctx.with_tx(|tx| {
        let balance = tx.db.accounts().iter().map(|account| account.balance).sum();
        let noted = tx.timestamp;
        let audit = due.scheduled_id;
        tx.db.sums().insert(Sum {
            audit,
            balance,
            noted,
        });
    });
}

#[view(accessor = rich, public)]
pub fn rich(ctx: &AnonymousViewContext) -> Vec<Account> {
    ctx.db.accounts().balance().filter(150u64..).collect()
}

/// The account of who asks, a minute later.
#[procedure]
pub fn balance_later(ctx: &mut ProcedureContext) -> Option<u64> {
    let later = ctx.timestamp + spacetimedb::TimeDuration::from_micros(60_000_000);
    ctx.sleep_until(later);
    ctx.with_tx(|tx| {
        let account = tx.db.accounts().owner().find(tx.sender());
        account.map(|account| account.balance)
    })
}

/// The accounts with a balance, for [`test_utils::TestContext::run_query`](spacetimedb::test_utils).
pub fn with_balance(balance: u64) -> impl Query<Account> {
    spacetimedb::QueryBuilder {}
        .accounts()
        .filter(move |account| account.balance.eq(balance))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lightcone_test_schedules::Schedules;
    use spacetimedb::test_utils::{TestAuth, TestContext};
    use spacetimedb::{ConnectionId, TimeDuration};

    fn user(name: &str) -> TestAuth {
        let token = format!(r#"{{"iss":"tests","sub":"{name}"}}"#);
        TestAuth::from_jwt_payload(token, ConnectionId::ZERO).expect("claims")
    }

    fn opened() -> TestContext {
        let test = TestContext::new().expect("a valid module");
        for name in ["ann", "bob"] {
            test.with_reducer_tx(user(name), open).expect("opened");
            test.clock.advance(TimeDuration::from_micros(5));
        }
        test
    }

    fn balances(test: &TestContext) -> Vec<u64> {
        let mut accounts: Vec<_> = test.db.accounts().iter().collect();
        accounts.sort_by_key(|account| account.id);
        accounts.iter().map(|account| account.balance).collect()
    }

    #[test]
    fn reducers_are_transactions() {
        let test = opened();
        test.with_reducer_tx(user("ann"), |ctx| pay(ctx, 2, 60))
            .expect("paid");
        assert_eq!(balances(&test), [40, 160]);
        let refused = test.with_reducer_tx(user("ann"), |ctx| pay(ctx, 2, 41));
        assert_eq!(refused, Err("not enough".to_owned()));
        assert_eq!(balances(&test), [40, 160], "nothing of it stays");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            test.with_reducer_tx(user("ann"), |ctx| -> Result<(), String> {
                pay(ctx, 2, 1)?;
                panic!("after the payment");
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(balances(&test), [40, 160], "nor of a panic");
    }

    #[test]
    fn unique_columns_time_and_keys_are_those_of_a_server() {
        let test = opened();
        let again = test.with_reducer_tx(user("ann"), open);
        assert!(again.is_err(), "she has an account");
        let accounts = test.db.accounts();
        assert_eq!(accounts.count(), 2);
        let bob = accounts.id().find(2).expect("the second one");
        assert_eq!(bob.opened, Timestamp::from_micros_since_unix_epoch(5));
        assert_eq!(accounts.balance().filter(..=100u64).count(), 2);
    }

    fn schedules(test: &TestContext) -> Schedules {
        let schedules = Schedules::new(test).reducer("interests", pay_interest);
        schedules.procedure("audits", audit)
    }

    fn interest(percent: u64, scheduled_at: ScheduleAt) -> Interest {
        Interest {
            scheduled_id: 0,
            scheduled_at,
            percent,
        }
    }

    fn days(count: i64) -> TimeDuration {
        TimeDuration::from_micros(count * 86_400_000_000)
    }

    #[test]
    fn what_is_due_runs_when_time_passes() {
        let test = opened();
        let mut time = schedules(&test);
        let start = test.clock.now();
        test.db.interests().insert(interest(10, days(1).into()));
        let once = ScheduleAt::Time(start + TimeDuration::from_micros(1));
        test.db.interests().insert(interest(200, once));
        assert_eq!(time.advance(TimeDuration::from_micros(0)), [""; 0]);
        assert_eq!(
            time.advance(TimeDuration::from_micros(5)),
            ["that is too much"]
        );
        assert_eq!(test.db.interests().count(), 1, "what called once is gone");
        assert_eq!(balances(&test), [100, 100]);
        assert!(time.advance(days(1)).is_empty());
        assert_eq!(balances(&test), [110, 110]);
        assert!(time.advance(days(1)).is_empty());
        assert_eq!(balances(&test), [121, 121], "each at its time, in order");
        let passed = days(2) + TimeDuration::from_micros(5);
        assert_eq!(test.clock.now(), start + passed);
        let row = test.db.interests().iter().next().expect("it stays");
        test.db.interests().scheduled_id().delete(row.scheduled_id);
        assert!(time.advance(days(1)).is_empty());
        assert_eq!(balances(&test), [121, 121]);
    }

    #[test]
    fn procedures_that_are_due_run_and_sleep() {
        let test = opened();
        let at = ScheduleAt::Time(test.clock.now() + days(1));
        test.db.audits().insert(Audit {
            scheduled_id: 0,
            scheduled_at: at,
        });
        assert!(schedules(&test).advance(days(1)).is_empty());
        let sums: Vec<Sum> = test.db.sums().iter().collect();
        assert_eq!(sums.len(), 1);
        assert_eq!((sums[0].audit, sums[0].balance), (1, 200));
        assert_eq!(sums[0].noted.to_micros_since_unix_epoch(), 86_460_000_010);
        assert_eq!(test.db.audits().count(), 0);
    }

    #[test]
    fn queries_views_and_procedures() {
        let test = opened();
        test.with_reducer_tx(user("bob"), |ctx| pay(ctx, 1, 60))
            .expect("paid");
        let found = test.run_query(with_balance(160)).expect("a query");
        assert_eq!(
            found.iter().map(|account| account.id).collect::<Vec<_>>(),
            [1]
        );
        let rich = rich(&test.anonymous_view_context());
        assert_eq!(
            rich.iter().map(|account| account.id).collect::<Vec<_>>(),
            [1]
        );
        let mut ctx = test.procedure_context(user("bob"));
        assert_eq!(balance_later(&mut ctx), Some(40));
        assert_eq!(test.clock.now().to_micros_since_unix_epoch(), 60_000_010);
    }
}
