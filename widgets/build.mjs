// Bundles src/index.ts into one ES module that the Python package carries.
// Un-minified and committed, so that an install needs no Node and a change can be read in a diff.
import { build } from "esbuild";

await build({
  entryPoints: ["src/index.ts"],
  outfile: "../cartoolkit/ui/static/index.js",
  absWorkingDir: import.meta.dirname,
  bundle: true,
  format: "esm",
  platform: "browser",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  banner: { js: "// Built from widgets/src by `npm run build`; do not edit." },
  logLevel: "info",
});
