// Package lsp serves an editor over the Language Server Protocol 3.17.
//
// [Serve] reads messages from one stream and answers on another. Requests are answered in
// the order of their arrival, from the tokens of the texts as they are at that moment
// ([editor.Workspace]), so that an answer never waits for a validation. Recipes are
// validated in the background a moment after the last change, and their findings published.
//
// The client is trusted no more than a recipe: messages, headers, texts and queues are
// bounded, a message that is not valid is answered with an error, and a request can be
// cancelled while it waits. The server runs nothing and writes no file.
package lsp
