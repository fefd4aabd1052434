// Deletes an object of a list, after a confirmation that shows its name.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useText } from '../i18n';
import { Confirm } from './confirm';
import type { Bulk } from './list-bulk';

interface Named {
  kind: string;
  meta: { id?: string; name: string };
}

interface Options<T extends Named> {
  remove: (o: T) => Promise<unknown>;
  title: (name: string) => string;
  help: string;
  /** The effect on one object, where it depends on the object. */
  helpOf?: (o: T) => string;
  action?: string;
  /** What the object is called in the title; its name unless given. */
  nameOf?: (o: T) => string;
  /** Does not ask for the name of a single object to be typed. */
  untyped?: boolean;
}

const named = (o: Named) => o.meta.name;

export function useRemoval<T extends Named>({
  remove,
  title,
  help,
  helpOf,
  action,
  nameOf = named,
  untyped,
}: Options<T>) {
  const { t } = useText();
  const client = useQueryClient();
  const [going, setGoing] = useState<T | null>(null);
  const run = useMutation({
    mutationFn: remove,
    onSuccess: (_, o) => (setGoing(null), client.invalidateQueries({ queryKey: [o.kind, 'list'] })),
  });
  const what = action ?? t('common.delete');
  return {
    /** The same for many rows of a list. */
    bulk: (applies?: (o: T) => boolean): Bulk<T> => ({
      id: 'delete',
      text: what,
      help,
      danger: true,
      untyped,
      applies,
      run: remove,
    }),
    ask: (o: T) => (run.reset(), setGoing(o)),
    dialog: going && (
      <Confirm
        title={title(nameOf(going))}
        help={helpOf?.(going) ?? help}
        action={what}
        danger
        name={untyped ? undefined : nameOf(going)}
        busy={run.isPending}
        error={run.error}
        onConfirm={() => run.mutate(going)}
        onClose={() => setGoing(null)}
      />
    ),
  };
}
