/**
 * node bench/yardstick-server.mjs http|koa FILE: what a request costs that does nothing. Parses each body as JSON and answers the
 * bytes of FILE, by node:http alone or by Koa. Prints its address; yardstick.mjs starts it.
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";
import Koa from "koa";

const [kind, file] = process.argv.slice(2);
const answer = readFileSync(pathToFileURL(file));

async function parseBody(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

const withKoa = () => {
  const app = new Koa();
  app.use(async (context) => {
    await parseBody(context.req);
    context.type = "application/json";
    context.body = answer;
  });
  return app.callback();
};

async function plainly(request, response) {
  await parseBody(request);
  response.writeHead(200, { "Content-Type": "application/json", "Content-Length": answer.length }).end(answer);
}

const server = createServer(kind === "koa" ? withKoa() : plainly);
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
process.once("SIGTERM", () => process.exit());
