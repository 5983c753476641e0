// Starts terrarium lsp for recipes.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = (context) => {
  const settings = vscode.workspace.getConfiguration("terrarium");
  client = new LanguageClient(
    "terrarium",
    "terrarium",
    { command: settings.get("path"), args: ["lsp"] },
    {
      documentSelector: [
        { scheme: "file", language: "terrarium" },
        { scheme: "file", pattern: "**/*.hcl.json" },
      ],
      initializationOptions: { layout: settings.get("layout"), moved: settings.get("moved") },
    },
  );
  context.subscriptions.push({ dispose: () => client.stop() });
  return client.start();
};
