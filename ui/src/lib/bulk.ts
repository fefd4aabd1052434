// Performs an action on many objects: a few at a time, each with its own result.

export interface Failure<T> {
  item: T;
  error: unknown;
}

export const atOnce = 4; // requests; more would delay others of the same session

/** runAll runs an action on each item and returns those on which it failed. It calls done for each that has ended. */
export async function runAll<T>(
  items: readonly T[],
  run: (item: T) => Promise<unknown>,
  done: (n: number) => void = () => undefined,
): Promise<Failure<T>[]> {
  const failures: Failure<T>[] = [];
  let [next, ended] = [0, 0];
  const worker = async () => {
    for (let i = next++; i < items.length; i = next++) {
      const item = items[i] as T;
      try {
        await run(item);
      } catch (error) {
        failures.push({ item, error });
      }
      done(++ended);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  return failures.sort((a, b) => items.indexOf(a.item) - items.indexOf(b.item));
}
