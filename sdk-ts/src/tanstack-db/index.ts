// Package `lightcone/tanstack-db`: it has nothing of a framework, so that all of those of TanStack DB may use it.

export { type LightconeCollectionOptions, lightconeCollectionOptions } from "./collection_options";
