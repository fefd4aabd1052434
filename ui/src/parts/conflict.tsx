// What somebody else has changed of an object while it is edited, field by field,
// and what to do about it.
import { Alert, AlertActionCloseButton, Button } from '@patternfly/react-core';
import { useEffect, useRef, useState } from 'react';
import { useText } from '../i18n';
import type { Change, Edit } from './edit';

interface Props<F> {
  edit: Edit<F>;
  /** A field's name in words. */
  label: (field: keyof F & string) => string;
  /** A field's value or a row in words, where it is no text, number, truth or list of texts. */
  text?: (field: keyof F & string, value: NonNullable<unknown>) => string | undefined;
}

const longest = 300; // characters of a value that are shown

export function Conflict<F>({ edit, label, text }: Props<F>) {
  const { t } = useText();
  const box = useRef<HTMLDivElement>(null);
  const any = edit.gone || edit.taken.length > 0 || edit.clashes.length > 0;
  // It stays where it is when nothing is left to say: the keyboard goes on from there.
  const [shown, setShown] = useState(false);
  if (any && !shown) setShown(true);
  // Who has pressed a button looks at it; who is typing is not taken away from there.
  const [decided, setDecided] = useState(0);
  useEffect(() => {
    if (edit.met + decided > 0) box.current?.focus();
  }, [edit.met, decided]);
  const words = (field: keyof F & string, value: unknown): string => {
    const plain = (v: unknown) =>
      typeof v === 'boolean'
        ? t(v ? 'op.yes' : 'op.no')
        : Array.isArray(v)
          ? v.join(', ')
          : typeof v === 'string' || typeof v === 'number'
            ? String(v)
            : JSON.stringify(v);
    if (value === undefined || value === null || value === '') return t('conflict.nothing');
    const said = text?.(field, value) ?? plain(value);
    return said === '' ? t('conflict.nothing') : said.length > longest ? `${said.slice(0, longest)}…` : said;
  };
  const each = (c: Change<F>) => {
    const field = c.field as keyof F & string;
    const name = label(field);
    // Rows of one list are told apart by what is in them.
    return {
      field,
      name,
      id: `${field} ${c.key ?? ''}`,
      what: c.key === undefined ? name : `${name}, ${words(field, c.theirs ?? c.mine)}`,
    };
  };
  const done = (settle: () => void) => () => (settle(), setDecided((n) => n + 1));
  if (!shown) return null;
  return (
    <div ref={box} role="alert" tabIndex={-1} className="basalt-conflict">
      {edit.gone && (
        <Alert variant="danger" isInline component="p" title={t('conflict.gone')}>
          {t('conflict.goneHelp')}
        </Alert>
      )}
      {edit.clashes.length > 0 && (
        <Alert variant="warning" isInline component="p" title={t('conflict.both')}>
          <p>{t('conflict.bothHelp')}</p>
          <ul>
            {edit.clashes.map((c) => {
              const { field, id, name, what } = each(c);
              return (
                <li key={id}>
                  <strong>{name}</strong>
                  <span>
                    {t('conflict.theirs')}: <q>{words(field, c.theirs)}</q>
                  </span>
                  <span>
                    {t('conflict.yours')}: <q>{words(field, c.mine)}</q>
                  </span>
                  <span className="basalt-actions">
                    <Button
                      variant="secondary"
                      size="sm"
                      aria-label={`${t('conflict.take')}: ${what}`}
                      onClick={done(() => edit.take(c))}
                    >
                      {t('conflict.take')}
                    </Button>
                    <Button
                      variant="secondary"
                      size="sm"
                      aria-label={`${t('conflict.keep')}: ${what}`}
                      onClick={done(() => edit.keep(c))}
                    >
                      {t('conflict.keep')}
                    </Button>
                  </span>
                </li>
              );
            })}
          </ul>
        </Alert>
      )}
      {edit.taken.length > 0 && (
        <Alert
          variant="info"
          isInline
          component="p"
          title={t('conflict.taken')}
          actionClose={<AlertActionCloseButton aria-label={t('conflict.seen')} onClose={done(edit.seen)} />}
        >
          <p>{t('conflict.takenHelp')}</p>
          <ul>
            {edit.taken.map((c) => {
              const { field, id, name } = each(c);
              return (
                <li key={id}>
                  <strong>{name}</strong>
                  <span>
                    <q>{words(field, c.before)}</q> → <q>{words(field, c.theirs)}</q>
                  </span>
                </li>
              );
            })}
          </ul>
        </Alert>
      )}
    </div>
  );
}
