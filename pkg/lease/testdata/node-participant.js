// Another implementation's participant in the lease protocol, in Node, for tests.
//
// usage: node node-participant.js JOB    JOB is JSON: Path, Log, Name, Epoch, Longest (of a lease, in ns)
//
// It creates LOCK.mutex exclusively, writes a bare token into it and polls every 10 ms while somebody else has it; stages
// at LOCK.stage and renames; and unlinks the claim at the end. It knows six members of a lease, keeps the others when it
// renews, and keeps no journal. Each operation is reported as one line of JSON before it begins and one after it ends,
// until standard input ends.
'use strict';
const fs = require('fs');
const crypto = require('crypto');

const job = JSON.parse(process.argv[2]);
const log = fs.openSync(job.Log, 'a');
const mutex = job.Path + '.mutex';
const stage = job.Path + '.stage';
const pause = new Int32Array(new SharedArrayBuffer(4));
const sleep = (ms) => Atomics.wait(pause, 0, 0, ms);
const random = (n) => Math.floor(Math.random() * n);

// The clock of all participants, in ns and, as the time of day, in ms.
const clock = () => BigInt(job.Epoch) + process.hrtime.bigint();
const now = () => Number(clock() / 1000000n);

function report(operation) {
  // Numbers of ns do not fit a double; they are written as JSON integers all the same.
  const text = JSON.stringify(operation, (_, v) => (typeof v === 'bigint' ? `\u0000${v}\u0000` : v));
  fs.writeSync(log, text.replace(/"\\u0000(\d+)\\u0000"/g, '$1') + '\n');
}

function enter() {
  for (const deadline = now() + 5000; ; sleep(10)) {
    try {
      const fd = fs.openSync(mutex, 'wx', 0o600);
      fs.writeSync(fd, crypto.randomUUID());
      fs.closeSync(fd);
      return true;
    } catch (e) {
      if (e.code !== 'EEXIST') throw e;
      if (now() > deadline) return false;
    }
  }
}

function read() {
  try {
    return fs.readFileSync(job.Path, 'utf8');
  } catch (e) {
    if (e.code === 'ENOENT') return null;
    throw e;
  }
}

function write(lease) {
  const text = JSON.stringify(lease, null, 2) + '\n';
  fs.writeFileSync(stage, text, { flag: 'wx' });
  fs.renameSync(stage, job.Path);
  if (read() !== text) throw new Error('the lease is not what was written');
  return text;
}

const expired = (lease) => Date.parse(lease.expiresAt) <= now();

// Each mutation answers { code, file, replaced }: "" is success, the files are texts.
const mutations = {
  acquire(o, text, lease) {
    if (lease && !expired(lease)) return { code: 'held', file: text };
    if (lease && o.Verb !== 'take-over') return { code: 'expired', file: text };
    const at = now();
    const fresh = {
      holderId: o.Holder,
      hostname: 'node',
      acquiredAt: new Date(at).toISOString(),
      expiresAt: new Date(at + o.ms).toISOString(),
      durationSeconds: o.ms / 1000,
      token: o.Token,
    };
    if (random(2)) fresh.vendor = { build: [7, 'x'] };
    return { code: '', file: write(fresh), replaced: text };
  },
  renew(o, text, lease) {
    if (!lease) return { code: 'absent' };
    if (lease.holderId !== o.Holder) return { code: 'not-holder', file: text };
    if (expired(lease)) return { code: 'expired', file: text };
    const until = Math.max(now() + Math.round(lease.durationSeconds * 1000), Date.parse(lease.expiresAt) + 1);
    lease.expiresAt = new Date(until).toISOString();
    lease.token = o.Token;
    return { code: '', file: write(lease) };
  },
  release(o, text, lease) {
    if (!lease) return { code: 'absent' };
    if (lease.holderId !== o.Holder) return { code: 'not-holder', file: text };
    fs.unlinkSync(job.Path);
    return { code: '', file: text };
  },
};
mutations['take-over'] = mutations.acquire;

function mutate(o) {
  if (!enter()) return { code: 'claim-timeout' };
  try {
    const text = read();
    return mutations[o.Verb](o, text, text && JSON.parse(text));
  } finally {
    fs.unlinkSync(mutex);
  }
}

let mine = '';
let other = '';

function step(n) {
  const id = `${job.Name}.${n}`;
  if (random(5) === 0) mine = ''; // forget it, and let it expire
  const verbs = mine
    ? ['renew', 'renew', 'renew', 'release', 'take-over']
    : ['take-over', 'take-over', 'take-over', 'acquire', 'renew', 'release'];
  const o = { ID: id, Verb: verbs[random(verbs.length)], Holder: mine || other, Token: 't' + id };
  if (o.Verb[0] === 'r' && !mine && random(6)) o.Verb = 'take-over'; // or hardly a lease would live to its expiry
  if (o.Verb === 'acquire' || o.Verb === 'take-over') {
    o.Holder = 'h' + id;
    o.ms = 1 + random(job.Longest / 1e6);
    o.Duration = o.ms * 1e6;
  }
  o.Call = clock();
  report(o);
  const answer = mutate(o);
  o.Return = clock();
  o.Answered = true;
  o.Code = answer.code;
  o.File = answer.file || '';
  o.ReplacedFile = answer.replaced || '';
  report(o);
  if (answer.file) other = JSON.parse(answer.file).holderId;
  if (answer.code === '') mine = o.Verb === 'release' ? '' : o.Holder;
  else if (o.Holder === mine && answer.code !== 'claim-timeout') mine = '';
}

let n = 0;
process.stdin.on('data', () => {});
process.stdin.on('end', () => process.exit(0));
(function loop() {
  step(++n);
  setTimeout(loop, random(4));
})();
