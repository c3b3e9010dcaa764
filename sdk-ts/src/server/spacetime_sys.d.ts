// The functions of the host (spec 04 §4.2).
declare module "spacetime:sys@2.0" {
  export const moduleHooks: unique symbol;
  export function table_id_from_name(name: string): number;
  export function index_id_from_name(name: string): number;
  export function datastore_table_row_count(table: number): bigint;
  export function datastore_table_scan_bsatn(table: number): number;
  export function datastore_index_scan_point_bsatn(
    index: number,
    buffer: ArrayBuffer,
    length: number,
  ): number;
  export function datastore_index_scan_range_bsatn(
    index: number,
    buffer: ArrayBuffer,
    prefixLength: number,
    prefixElements: number,
    startLength: number,
    endLength: number,
  ): number;
  export function datastore_delete_by_index_scan_point_bsatn(
    index: number,
    buffer: ArrayBuffer,
    length: number,
  ): number;
  export function datastore_delete_by_index_scan_range_bsatn(
    index: number,
    buffer: ArrayBuffer,
    prefixLength: number,
    prefixElements: number,
    startLength: number,
    endLength: number,
  ): number;
  export function datastore_delete_all_by_eq_bsatn(
    table: number,
    buffer: ArrayBuffer,
    length: number,
  ): number;
  export function datastore_insert_bsatn(table: number, buffer: ArrayBuffer, length: number): number;
  export function datastore_update_bsatn(
    table: number,
    index: number,
    buffer: ArrayBuffer,
    length: number,
  ): number;
  export function row_iter_bsatn_advance(iterator: number, buffer: ArrayBuffer): number;
  export function row_iter_bsatn_close(iterator: number): void;
  export function console_log(level: number, message: string): void;
  export function console_timer_start(name: string): number;
  export function console_timer_end(id: number): void;
  export function identity(): bigint;
  export function get_jwt_payload(connection: bigint): Uint8Array;
  export function procedure_start_mut_tx(): bigint;
  export function procedure_commit_mut_tx(): void;
  export function procedure_abort_mut_tx(): void;
  export function procedure_http_request(
    request: Uint8Array,
    body: Uint8Array | string,
  ): [Uint8Array, Uint8Array];
}

declare module "spacetime:sys@2.1" {
  export function datastore_clear(table: number): bigint;
}

declare module "spacetime:sys@2.2" {
  export function env_get(key: string): string | null;
}
