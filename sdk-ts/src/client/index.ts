export * from "../core";
