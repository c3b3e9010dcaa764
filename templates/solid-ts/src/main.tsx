import { SpacetimeDBProvider } from 'lightcone/solid';
import { render } from 'solid-js/web';
import { builder } from './connection';
import { People } from './People';
import './style.css';

render(
  () => (
    <SpacetimeDBProvider connectionBuilder={builder}>
      <People />
    </SpacetimeDBProvider>
  ),
  document.getElementById('root')!
);
