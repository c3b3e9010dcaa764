// How often an operation starts on an account that another one in flight has (section 5.7).

export class CollisionTracker {
  readonly #inFlight: Uint32Array;
  ops = 0;
  collisions = 0;

  constructor(accounts: number) {
    this.#inFlight = new Uint32Array(accounts);
  }

  begin(account: number): void {
    this.ops++;
    if (this.#inFlight[account]!++ > 0) this.collisions++;
  }

  end(account: number): void {
    this.#inFlight[account]!--;
  }

  get rate(): number {
    return this.ops === 0 ? 0 : this.collisions / this.ops;
  }
}
