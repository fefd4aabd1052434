// Shows other users' changes of an object while it is edited, field by field, and the possible actions.
import { Alert, AlertActionCloseButton, Button } from '@patternfly/react-core';
import { useEffect, useRef, useState } from 'react';
import { useText } from '../i18n';
import type { Change, Edit } from './edit';

interface Props<F> {
  edit: Edit<F>;
  /** Returns a field's name in words. */
  label: (field: keyof F & string) => string;
  /** Returns a field's value or a row in words, unless it is a text, number, boolean or list of texts. */
  text?: (field: keyof F & string, value: NonNullable<unknown>) => string | undefined;
}

const longest = 300; // maximum characters of a shown value

export function Conflict<F>({ edit, label, text }: Props<F>) {
  const { t } = useText();
  const box = useRef<HTMLDivElement>(null);
  const any = edit.gone || edit.taken.length > 0 || edit.clashes.length > 0;
  // It stays mounted when nothing is left to show, so that the keyboard focus is kept.
  const [shown, setShown] = useState(false);
  if (any && !shown) setShown(true);
  // After a press of a button the focus moves here; it is not taken from a field that the user is typing in.
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
    // Rows of one list are identified by their content.
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
