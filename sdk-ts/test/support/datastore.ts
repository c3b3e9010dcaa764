import { hex, type SysFunctions } from "./host";

/** Host functions that record the bytes they were given, in `log`, and answer from what a test sets. */
export class Datastore {
  readonly log: string[] = [];
  /** Answers of iterators, by number: rows in hexadecimal; a negative length says that no more follow. */
  readonly answers: (string | { tooSmall: number } | { more: string })[] = [];
  /** What the host writes over the start of an inserted row. */
  writeBack = "";
  jwt = "";
  private iterators = 0;
  private readonly indexIds = new Map<string, number>();

  constructor(indexIds: Record<string, number> = {}) {
    this.indexIds = new Map(Object.entries(indexIds));
  }

  private bytes(buffer: ArrayBuffer, length: number): string {
    return hex(new Uint8Array(buffer, 0, length));
  }

  readonly functions: SysFunctions = {
    table_id_from_name: (name: string) => {
      this.log.push(`table_id_from_name("${name}")`);
      return 4096;
    },
    index_id_from_name: (name: string) => {
      this.log.push(`index_id_from_name("${name}")`);
      return this.indexIds.get(name) ?? 99;
    },
    datastore_insert_bsatn: (table: number, buffer: ArrayBuffer, length: number) => {
      this.log.push(`insert(${table}, ${length}) ${this.bytes(buffer, length)}`);
      new Uint8Array(buffer).set(Buffer.from(this.writeBack, "hex"));
      return this.writeBack.length / 2;
    },
    datastore_update_bsatn: (table: number, index: number, buffer: ArrayBuffer, length: number) => {
      this.log.push(`update(${table}, ${index}, ${length}) ${this.bytes(buffer, length)}`);
      return 0;
    },
    datastore_table_scan_bsatn: (table: number) => {
      this.log.push(`table_scan(${table})`);
      return ++this.iterators;
    },
    datastore_table_row_count: () => {
      this.log.push("row_count");
      return 2n;
    },
    datastore_clear: () => {
      this.log.push("clear");
      return 2n;
    },
    datastore_index_scan_point_bsatn: (index: number, buffer: ArrayBuffer, length: number) => {
      this.log.push(`point(${index}, ${length}) ${this.bytes(buffer, length)}`);
      return ++this.iterators;
    },
    datastore_index_scan_range_bsatn: (index: number, buffer: ArrayBuffer, ...lengths: number[]) => {
      const [prefix, , start, end] = lengths as [number, number, number, number];
      this.log.push(`range(${index}, ${lengths.join(", ")}) ${this.bytes(buffer, prefix + start + end)}`);
      return ++this.iterators;
    },
    datastore_delete_by_index_scan_point_bsatn: (index: number, buffer: ArrayBuffer, length: number) => {
      this.log.push(`delete_point(${index}, ${length}) ${this.bytes(buffer, length)}`);
      return 1;
    },
    datastore_delete_by_index_scan_range_bsatn: (
      index: number,
      buffer: ArrayBuffer,
      ...lengths: number[]
    ) => {
      const [prefix, , start, end] = lengths as [number, number, number, number];
      this.log.push(
        `delete_range(${index}, ${lengths.join(", ")}) ${this.bytes(buffer, prefix + start + end)}`,
      );
      return 1;
    },
    datastore_delete_all_by_eq_bsatn: (table: number, buffer: ArrayBuffer, length: number) => {
      this.log.push(`delete_eq(${table}, ${length}) ${this.bytes(buffer, length)}`);
      return 1;
    },
    row_iter_bsatn_advance: (iterator: number, buffer: ArrayBuffer) => {
      const answer = this.answers.shift() ?? "";
      if (typeof answer === "object" && "tooSmall" in answer) {
        this.log.push(`advance(${iterator}, ${buffer.byteLength}) too small`);
        throw { __buffer_too_small__: answer.tooSmall };
      }
      const more = typeof answer === "object";
      const bytes = Buffer.from(more ? answer.more : answer, "hex");
      new Uint8Array(buffer).set(bytes);
      const result = more ? bytes.length : -bytes.length;
      this.log.push(`advance(${iterator}, ${buffer.byteLength}) -> ${result === 0 ? 0 : result}`);
      return result === 0 ? 0 : result;
    },
    row_iter_bsatn_close: (iterator: number) => {
      this.log.push(`close(${iterator})`);
    },
    console_log: (level: number, message: string) => {
      this.log.push(`log(${level}) ${message}`);
    },
    console_timer_start: (name: string) => {
      this.log.push(`timer_start("${name}")`);
      return 1;
    },
    console_timer_end: (id: number) => {
      this.log.push(`timer_end(${id})`);
    },
    identity: () => 0xc200n,
    get_jwt_payload: (connection: bigint) => {
      this.log.push(`jwt(${connection})`);
      return new TextEncoder().encode(this.jwt);
    },
    procedure_start_mut_tx: () => {
      this.log.push("start");
      return 1700000000000001n;
    },
    procedure_commit_mut_tx: () => {
      this.log.push("commit");
    },
    procedure_abort_mut_tx: () => {
      this.log.push("abort");
    },
  };

  take(): string[] {
    return this.log.splice(0);
  }
}
