import { bootstrapApplication } from '@angular/platform-browser';
import { provideSpacetimeDB } from 'lightcone/angular';
import { builder } from './connection';
import { People } from './people';

bootstrapApplication(People, { providers: [provideSpacetimeDB(builder)] }).catch(console.error);
