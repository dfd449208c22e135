// What the drivers of the client matrix on Node take and print: see matrix.py for the contract.
"use strict";
const fs = require("node:fs");

const FILLER = "polylog ";
const RETENTION = "3600000";
const ALTERED_RETENTION = "7200000";

function plain(_, value) {
  return typeof value === "bigint" ? Number(value) : value;
}

function emit(fields) {
  fs.writeSync(1, JSON.stringify(fields, plain) + "\n");
}

function note(error) {
  emit({ note: String(error && error.message ? error.message : error).slice(0, 300) });
}

const keyOf = (number) => `key-${number}`;
const valueOf = (prefix, number) =>
  `${prefix} ${number} ${FILLER.repeat(number % 20)}`.trimEnd();

// What a member has handed over, and so may commit: partition -> next offset.
class Positions {
  constructor(given) {
    this.stopFile = given.stop;
    this.count = 0;
    this.next = new Map();
  }

  stopped() {
    return fs.existsSync(this.stopFile);
  }

  record(partition, offset, value) {
    emit({ record: [partition, Number(offset), value] });
    this.next.set(partition, Number(offset) + 1);
    this.count += 1;
  }

  // Hands out what is to be committed, once.
  take() {
    const pending = [...this.next.entries()];
    this.next.clear();
    return pending;
  }
}

function parse(argv) {
  const given = { protocol: "classic", idempotent: "0" };
  for (let n = 1; n + 1 < argv.length; n += 2) given[argv[n].slice(2)] = argv[n + 1];
  for (const name of ["count", "partitions", "idempotent"]) {
    if (name in given) given[name] = Number(given[name]);
  }
  return [argv[0], given];
}

// The same for every item of lists with commas; a list of one goes with all.
function each(given) {
  const lists = Object.fromEntries(["topic", "codec", "prefix", "time"]
    .filter((name) => name in given).map((name) => [name, given[name].split(",")]));
  const rounds = Math.max(...Object.values(lists).map((items) => items.length));
  return Array.from({ length: rounds }, (_, n) => {
    const one = { ...given };
    for (const [name, items] of Object.entries(lists)) one[name] = items[n % items.length];
    if ("time" in one) one.time = Number(one.time);
    return one;
  });
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// `commands` maps a name to an async function of the arguments.
function run(commands) {
  const [command, given] = parse(process.argv.slice(2));
  process.on("unhandledRejection", (error) => note(error));
  const all = async () => {
    for (const one of each(given)) emit({ done: (await commands[command](one)) || {} });
  };
  all().then(
    () => process.exit(0),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
}

module.exports = {
  RETENTION, ALTERED_RETENTION, emit, note, keyOf, valueOf, Positions, sleep, run,
};
