// Prints the scopes of files, as editors find them with the grammar: one line of JSON for
// each token. The tests run it; it needs vscode-textmate and vscode-oniguruma.
const fs = require("fs");
const path = require("path");
const textmate = require("vscode-textmate");
const oniguruma = require("vscode-oniguruma");

const grammar = path.join(__dirname, "vscode/syntaxes/terrarium.tmLanguage.json");
const javascript = { scopeName: "source.js", patterns: [{ name: "keyword.js", match: "\\b(return|if|const)\\b" }] };

const registry = new textmate.Registry({
  onigLib: oniguruma.loadWASM(fs.readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm")).buffer).then(() => ({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  })),
  loadGrammar: async (scope) =>
    scope === "source.js" ? javascript : textmate.parseRawGrammar(fs.readFileSync(grammar, "utf8"), grammar),
});

registry.loadGrammar("source.terrarium").then((rules) => {
  for (const file of process.argv.slice(2)) {
    let state = textmate.INITIAL;
    fs.readFileSync(file, "utf8").split("\n").forEach((text, line) => {
      const found = rules.tokenizeLine(text, state);
      state = found.ruleStack;
      for (const t of found.tokens) {
        const word = text.slice(t.startIndex, t.endIndex);
        console.log(JSON.stringify({ file, line: line + 1, text: word, scopes: t.scopes.join(" ") }));
      }
    });
  }
});
