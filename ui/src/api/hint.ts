// Hints of the API's errors, which name commands of the CLI where these are the way: the portal shows the rest.

/** A command of the CLI, or a flag of one. */
const command = /\bbasalt [a-z]|(^|\s)--[a-z]/;

/** withoutCommands returns a hint without its clauses that contain a command; undefined if no other clause is left. */
export function withoutCommands(hint: string | undefined): string | undefined {
  if (!hint || !command.test(hint)) return hint;
  // Clauses alternate with what separates them.
  const parts = hint.split(/([;:,] )/);
  let text = '';
  for (let i = 0; i < parts.length; i += 2) {
    const clause = parts[i]!;
    if (!command.test(clause)) text += (text && parts[i - 1]) + clause;
  }
  return text.replace(/^(and|or) /, '') || undefined;
}
