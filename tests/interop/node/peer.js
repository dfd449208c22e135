// kafkajs as a peer: node peer.js PORT produce TOPIC CODEC COUNT
//                    node peer.js PORT batch TOPIC CODEC JSON-OF-MESSAGES
// Prints one line of JSON: what the broker answered for each partition.
"use strict";
const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require("kafkajs");
CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");
CompressionCodecs[CompressionTypes.LZ4] = new (require("kafkajs-lz4"))().codec;

const codecs = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
};

function numbered(count) {
  return Array.from({ length: count }, (_, n) => ({
    key: `key-${n}`,
    value: `kafkajs ${n} ${"x".repeat(n % 50)}`,
    headers: { number: String(n) },
    partition: 0,
  }));
}

async function main([port, what, topic, codec, argument]) {
  const kafka = new Kafka({
    brokers: [`127.0.0.1:${port}`],
    clientId: "kafkajs-peer",
    logLevel: logLevel.ERROR,
    retry: { retries: 5 },
  });
  const producer = kafka.producer();
  await producer.connect();
  const messages = what === "batch" ? JSON.parse(argument) : numbered(Number(argument));
  for (const message of messages) message.partition = 0;
  const answer = await producer.send({ topic, acks: -1, compression: codecs[codec], messages });
  await producer.disconnect();
  console.log(JSON.stringify(answer));
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
