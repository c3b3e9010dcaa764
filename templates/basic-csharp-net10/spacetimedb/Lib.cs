using SpacetimeDB;

public static partial class Module
{
    /// <summary>The tables of the database. Reducers, and only they, change them.</summary>
    [SpacetimeDB.Table(Accessor = "Person", Public = true)]
    public partial struct Person
    {
        [SpacetimeDB.PrimaryKey]
        [SpacetimeDB.AutoInc]
        public uint Id;

        public string Name;
    }

    /// <summary>Runs once, when the database is created.</summary>
    [SpacetimeDB.Reducer(ReducerKind.Init)]
    public static void Init(ReducerContext ctx)
    {
    }

    /// <summary>Runs when a client connects.</summary>
    [SpacetimeDB.Reducer(ReducerKind.ClientConnected)]
    public static void ClientConnected(ReducerContext ctx)
    {
        Log.Info($"{ctx.Sender} connected");
    }

    /// <summary>Runs when a client has gone.</summary>
    [SpacetimeDB.Reducer(ReducerKind.ClientDisconnected)]
    public static void ClientDisconnected(ReducerContext ctx)
    {
        Log.Info($"{ctx.Sender} disconnected");
    }

    /// <summary>Clients call these. An exception undoes what the call has changed.</summary>
    [SpacetimeDB.Reducer]
    public static void Add(ReducerContext ctx, string name)
    {
        if (name.Length == 0)
        {
            throw new System.ArgumentException("a person has a name");
        }
        // The database chooses the number.
        ctx.Db.Person.Insert(new Person { Id = 0, Name = name });
    }

    [SpacetimeDB.Reducer]
    public static void SayHello(ReducerContext ctx)
    {
        foreach (var person in ctx.Db.Person.Iter())
        {
            Log.Info($"Hello, {person.Name}!");
        }
        Log.Info("Hello, World!");
    }
}
