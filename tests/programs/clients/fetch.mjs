// Fetches a URL with the built-in fetch(), or with node:https when a CA is
// given, which fetch() takes from no argument: `fetch.mjs URL [CA]`.
import { readFileSync } from "node:fs";
import https from "node:https";

const [url, ca] = process.argv.slice(2);
if (ca) {
  https
    .get(url, { ca: readFileSync(ca) }, (response) => {
      response.setEncoding("utf8");
      let body = "";
      response.on("data", (part) => (body += part));
      response.on("end", () => console.log(response.statusCode, body));
    })
    .on("error", (error) => {
      console.error(String(error));
      process.exitCode = 1;
    });
} else {
  const response = await fetch(url);
  console.log(response.status, await response.text());
  process.exitCode = response.ok ? 0 : 1;
}
