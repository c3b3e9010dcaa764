// Prints the counters that the demo compares before and after the load: node demo-metrics.mjs <server URL>

const [url] = process.argv.slice(2);
const response = await fetch(`${url}/v1/metrics`);
if (!response.ok) throw new Error(`/v1/metrics answered ${response.status}`);

const sums = {};
for (const line of (await response.text()).split('\n')) {
  const sample = /^([a-z_]+)(?:\{.*\})? ([0-9.e+]+)$/.exec(line);
  // Calls that failed are not among the transactions.
  if (sample && !line.includes('committed="false"')) sums[sample[1]] = (sums[sample[1]] ?? 0) + Number(sample[2]);
}
const required = name => {
  if (!(name in sums)) throw new Error(`the server has no metric ${name}`);
  return sums[name];
};
console.log(
  JSON.stringify({
    at: performance.timeOrigin + performance.now(),
    transactions: required('spacetime_num_txns_total'),
    logBytes: required('spacetime_message_log_size_bytes'),
    syncs: required('lightcone_log_syncs_total'),
  })
);
