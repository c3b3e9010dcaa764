// What C# bindings use of the package SpacetimeDB.ClientSDK: names and signatures only, so that a compiler can check them.
// Written for the C# 7 of Mono.
using System;
using System.Collections.Generic;
using SpacetimeDB.ClientApi;

namespace SpacetimeDB
{
    [AttributeUsage(AttributeTargets.Class | AttributeTargets.Struct | AttributeTargets.Enum)]
    public sealed class TypeAttribute : Attribute { }

    public struct Unit { }
    public struct Identity : IEquatable<Identity>, IComparable<Identity>
    {
        public bool Equals(Identity other) => true;
        public int CompareTo(Identity other) => 0;
    }
    public struct ConnectionId { }
    public struct Timestamp { }
    public struct TimeDuration { }
    public struct Uuid { }
    public struct I128 { }
    public struct U128 { }
    public struct I256 { }
    public struct U256 { }
    public abstract class ScheduleAt { }
    public sealed class Result<T, E> { }

    public interface IReducerArgs { string ReducerName { get; } }
    public interface IProcedureArgs { string ProcedureName { get; } }

    public sealed class ProcedureCallbackResult<T>
    {
        public bool IsSuccess => true;
        public T Value => default(T);
        public Exception Error => null;
        public static ProcedureCallbackResult<T> Success(T value) => null;
        public static ProcedureCallbackResult<T> Failure(Exception error) => null;
    }
    public delegate void ProcedureCallback<T>(IProcedureEventContext ctx, ProcedureCallbackResult<T> result);

    public interface IDbConnection
    {
        void InternalCallReducer<T>(T args) where T : IReducerArgs, new();
        void InternalCallProcedure<TArgs, TReturn>(TArgs args, ProcedureCallback<TReturn> callback)
            where TArgs : IProcedureArgs, new()
            where TReturn : new();
    }

    public abstract class RemoteBase
    {
        protected readonly IDbConnection conn;
        protected RemoteBase(IDbConnection conn) { this.conn = conn; }
    }

    public interface IRemoteTableHandle { }

    public abstract class RemoteTablesBase
    {
        protected void AddTable(IRemoteTableHandle table) { }
    }

    public abstract class RemoteTableHandle<EventContext, Row> : IRemoteTableHandle
        where EventContext : class, IEventContext
        where Row : class, new()
    {
        protected RemoteTableHandle(IDbConnection conn) { }
        protected abstract string RemoteTableName { get; }
        protected virtual object GetPrimaryKey(Row row) => null;

        public abstract class UniqueIndexBase<Column>
        {
            protected UniqueIndexBase(RemoteTableHandle<EventContext, Row> table) { }
            protected abstract Column GetKey(Row row);
            public Row Find(Column value) => null;
        }

        public abstract class BTreeIndexBase<Column>
        {
            protected BTreeIndexBase(RemoteTableHandle<EventContext, Row> table) { }
            protected abstract Column GetKey(Row row);
            public IEnumerable<Row> Filter(Column value) => null;
        }
    }

    public abstract class RemoteEventTableHandle<EventContext, Row> : IRemoteTableHandle
        where EventContext : class, IEventContext
        where Row : class, new()
    {
        protected RemoteEventTableHandle(IDbConnection conn) { }
        protected abstract string RemoteTableName { get; }
    }

    public interface IQuery<Row> { string ToSql(); }
    public sealed class Col<Row, Value> { public Col(string table, string column) { } }
    public sealed class IxCol<Row, Value> { public IxCol(string table, string column) { } }
    public sealed class NullableCol<Row, Value> { public NullableCol(string table, string column) { } }
    public sealed class NullableIxCol<Row, Value> { public NullableIxCol(string table, string column) { } }
    public sealed class Table<Row, Cols, IxCols> : IQuery<Row>
    {
        public Table(string name, Cols cols, IxCols ixCols) { }
        public string ToSql() => "";
    }

    public abstract class Event<R> { }
    public sealed class ReducerEvent<R> { public Status Status => null; }
    public sealed class ProcedureEvent { }

    public interface IEventContext { }
    public interface IReducerEventContext { }
    public interface ISubscriptionEventContext { }
    public interface IProcedureEventContext { }
    public interface IErrorContext { Exception Event { get; } }

    public interface IDbContext<DbView, RemoteReducers, TSubscriptionBuilder, RemoteProcedures>
    {
        DbView Db { get; }
        RemoteReducers Reducers { get; }
        RemoteProcedures Procedures { get; }
        bool IsActive { get; }
        Identity? Identity { get; }
        ConnectionId ConnectionId { get; }
        void Disconnect();
        TSubscriptionBuilder SubscriptionBuilder();
    }

    public abstract class SubscriptionHandleBase<SubscriptionEventContext, ErrorContext>
        where SubscriptionEventContext : ISubscriptionEventContext
        where ErrorContext : IErrorContext
    {
        protected SubscriptionHandleBase(
            IDbConnection conn,
            Action<SubscriptionEventContext> onApplied,
            Action<ErrorContext, Exception> onError,
            string[] queries
        ) { }
    }

    public abstract class DbConnectionBase<DbConnection, Tables, Reducer> : IDbConnection
        where DbConnection : DbConnectionBase<DbConnection, Tables, Reducer>, new()
        where Tables : RemoteTablesBase
    {
        public abstract Tables Db { get; }
        public bool IsActive => true;
        public Identity? Identity => null;
        public ConnectionId ConnectionId => default(ConnectionId);
        public void Disconnect() { }
        public void InternalCallReducer<T>(T args) where T : IReducerArgs, new() { }
        public void InternalCallProcedure<TArgs, TReturn>(TArgs args, ProcedureCallback<TReturn> callback)
            where TArgs : IProcedureArgs, new()
            where TReturn : new()
        { }

        protected abstract IEventContext ToEventContext(Event<Reducer> happened);
        protected abstract IReducerEventContext ToReducerEventContext(ReducerEvent<Reducer> happened);
        protected abstract ISubscriptionEventContext MakeSubscriptionEventContext();
        protected abstract IErrorContext ToErrorContext(Exception exception);
        protected abstract IProcedureEventContext ToProcedureEventContext(ProcedureEvent happened);
        protected abstract bool Dispatch(IReducerEventContext context, Reducer reducer);
    }
}

namespace SpacetimeDB.ClientApi
{
    public abstract class Status
    {
        public sealed class Failed : Status { public string Failed_ => ""; }
        public sealed class OutOfEnergy : Status { }
    }
}
