// Removes email addresses from verdicts.
(event) => {
  const redacted = event.payload.replace(/[\w.+-]+@[\w.-]+\w/g, "<address>");
  if (redacted !== event.payload) return patch({ payload: redacted });
};
