// What the template in C# uses of the package SpacetimeDB.Runtime, and of what the package generates for it: names and signatures only,
// so that a compiler can check them. Written for the C# 7 of Mono.
using System;
using System.Collections.Generic;

namespace SpacetimeDB
{
    [AttributeUsage(AttributeTargets.Class | AttributeTargets.Struct, AllowMultiple = true)]
    public sealed class TableAttribute : Attribute
    {
        public string Accessor { get; set; }
        public bool Public { get; set; }
    }
    [AttributeUsage(AttributeTargets.Field)]
    public sealed class PrimaryKeyAttribute : Attribute { }
    [AttributeUsage(AttributeTargets.Field)]
    public sealed class AutoIncAttribute : Attribute { }
    [AttributeUsage(AttributeTargets.Method)]
    public sealed class ReducerAttribute : Attribute
    {
        public ReducerAttribute() { }
        public ReducerAttribute(ReducerKind kind) { }
    }
    public enum ReducerKind { UserDefined, Init, ClientConnected, ClientDisconnected }

    public struct Identity { }
    public static class Log
    {
        public static void Info(string message) { }
    }
    public sealed class PersonHandle
    {
        public Module.Person Insert(Module.Person row) => row;
        public IEnumerable<Module.Person> Iter() => null;
    }
    public sealed class Tables
    {
        public PersonHandle Person => null;
    }
    public sealed class ReducerContext
    {
        public Tables Db => null;
        public Identity Sender => default(Identity);
    }
}
