// The actions of a list's rows, each with a confirmation.
import { useCallback, useState } from 'react';
import type { Action } from './actions';
import { BulkDialog, type Bulk } from './list-bulk';

interface Thing {
  meta: { name: string };
}

const nameOf = (o: Thing) => o.meta.name;

export function useRowActions<T extends Thing>(bulk: readonly Bulk<T>[]) {
  const [asked, ask] = useState<{ of: Bulk<T>; item: T } | null>(null);
  const actions = useCallback(
    (item: T): Action[] =>
      bulk
        .filter((b) => b.applies?.(item) ?? true)
        .map((b) => ({ text: b.text, danger: b.danger, run: () => ask({ of: b, item }) })),
    [bulk],
  );
  const dialog = asked && (
    <BulkDialog
      of={asked.of}
      items={[asked.item]}
      left={0}
      nameOf={nameOf}
      onDone={() => undefined}
      onClose={() => ask(null)}
    />
  );
  return { actions, dialog };
}
