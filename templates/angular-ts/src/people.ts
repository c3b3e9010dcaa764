import { Component, signal } from '@angular/core';
import { injectReducer, injectSpacetimeDB, injectTable } from 'lightcone/angular';
import { reducers, tables } from './module_bindings';

@Component({
  selector: 'app-people',
  template: `
    <main>
      <h1>People</h1>
      <p role="status">{{ connection().isActive ? 'Connected' : (connection().connectionError?.message ?? 'Connecting…') }}</p>
      <form (submit)="submit($event, name)">
        <input #name aria-label="Name" placeholder="Name" autocomplete="off" required />
        <button>Add</button>
      </form>
      @if (error()) {
        <p role="alert">{{ error() }}</p>
      }
      <ul>
        @for (person of people().rows; track person.id) {
          <li>{{ person.name }}</li>
        }
      </ul>
    </main>
  `,
})
export class People {
  readonly connection = injectSpacetimeDB();
  readonly people = injectTable(tables.person);
  readonly add = injectReducer(reducers.add);
  readonly error = signal<string | undefined>(undefined);

  async submit(event: Event, input: HTMLInputElement) {
    event.preventDefault();
    try {
      await this.add({ name: input.value });
      input.value = '';
      this.error.set(undefined);
    } catch (refused) {
      this.error.set((refused as Error).message);
    }
  }
}
