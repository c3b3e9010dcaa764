// A small application, whose bundle is measured: subscribes, shows rows, calls a reducer.

import { DbConnection, tables } from "../client/bindings";

const connection = DbConnection.builder()
  .withUri("ws://localhost:3000")
  .withDatabaseName("app")
  .withToken(localStorage.getItem("token") ?? undefined)
  .onConnect((_, identity, token) => {
    console.log(identity.toHexString());
    localStorage.setItem("token", token);
  })
  .build();

connection.db.person.onInsert((_, person) => {
  document.body.append(person.name);
});
connection.subscriptionBuilder().subscribe(tables.person.where((person) => person.id.lt(100)));
document.addEventListener("click", () => connection.reducers.addPerson({ id: 1, name: "Alice" }));
