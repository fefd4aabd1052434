// Two change the same object: the server takes the first, and tells the second.
// What the second typed is kept: it is put over what the first has saved, field
// by field, looked at, and sent again.
import { Alert, AlertActionLink } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { asApiError } from '../api/client';
import { useText } from '../i18n';

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/** rebased is theirs, with what one has changed oneself since base. */
export const rebased = <F extends object>(base: F, mine: F, theirs: F): F =>
  Object.fromEntries(Object.entries(theirs).map(([k, v]) => [k, same(mine[k as keyof F], base[k as keyof F]) ? v : mine[k as keyof F]])) as F;

/** clashes are the fields that both have changed, to different values. */
export const clashes = <F extends object>(base: F, mine: F, theirs: F): (keyof F)[] =>
  (Object.keys(theirs) as (keyof F)[]).filter((k) => !same(mine[k], base[k]) && !same(theirs[k], base[k]) && !same(mine[k], theirs[k]));

interface Options<T, F> {
  object: T;
  /** The fields of the form, as an object has them. */
  fields: (object: T) => F;
  /** PUT, at the revision of the object. */
  save: (object: T, form: F) => Promise<T>;
  read: () => Promise<T>;
  onSaved: (object: T) => void;
}

/** useEdit is a form that changes an object, and survives that somebody else does too. */
export function useEdit<T, F extends object>({ object, fields, save, read, onSaved }: Options<T, F>) {
  const [base, setBase] = useState(object); // as the form was filled from
  const [form, setForm] = useState(() => fields(object));
  const [both, setBoth] = useState<(keyof F)[]>([]);
  const send = useMutation({ mutationFn: () => save(base, form), onSuccess: onSaved });
  const load = useMutation<T, Error, boolean>({
    mutationFn: read,
    onSuccess: (theirs, keep) => {
      setBoth(keep ? clashes(fields(base), form, fields(theirs)) : []);
      setForm(keep ? rebased(fields(base), form, fields(theirs)) : fields(theirs));
      setBase(theirs);
      send.reset();
    },
  });
  const conflict = Boolean(send.error) && asApiError(send.error).code === 'conflict';
  return {
    form,
    set: <K extends keyof F>(name: K, value: F[K]) => setForm((f) => ({ ...f, [name]: value })),
    submit: () => send.mutate(),
    busy: send.isPending || load.isPending,
    /** Other than the conflict, which <Conflict> shows. */
    error: load.error ?? (conflict ? null : send.error),
    conflict,
    /** What both have changed, after a merge: one's own is in the form. */
    both,
    merge: () => load.mutate(true),
    discard: () => load.mutate(false),
  };
}

interface Props {
  edit: { conflict: boolean; both: readonly PropertyKey[]; merge: () => void; discard: () => void };
  /** A field's name in words. */
  label?: (field: string) => string;
}

/** Conflict says what has happened, and what to do. */
export function Conflict({ edit, label = (f) => f }: Props) {
  const { t } = useText();
  if (edit.conflict)
    return (
      <Alert
        variant="warning" isInline isLiveRegion component="p" title={t('conflict.title')}
        actionLinks={(
          <>
            <AlertActionLink component="button" type="button" onClick={edit.merge}>{t('conflict.merge')}</AlertActionLink>
            <AlertActionLink component="button" type="button" onClick={edit.discard}>{t('conflict.discard')}</AlertActionLink>
          </>
        )}
      >
        {t('conflict.help')}
      </Alert>
    );
  if (edit.both.length === 0) return null;
  return <Alert variant="info" isInline isLiveRegion component="p" title={t('conflict.both', { fields: edit.both.map((f) => label(String(f))).join(', ') })} />;
}
