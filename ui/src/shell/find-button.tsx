// Opens the search over everything: a button, or Ctrl-K (⌘K). The dialog is loaded when it is first opened.
import { Button } from '@patternfly/react-core';
import { SearchIcon } from '@patternfly/react-icons';
import { lazy, Suspense, useEffect, useState } from 'react';
import type { Session } from '../api/session';
import { useText, withWords } from '../i18n';

const Find = lazy(withWords(() => import('./find').then((m) => ({ default: m.Find }))));

export function FindButton({ session, paths }: { session: Session; paths: readonly string[] }) {
  const { t } = useText();
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const lead = (e: KeyboardEvent) => {
      if (e.key.toLowerCase() !== 'k' || !(e.ctrlKey || e.metaKey) || e.altKey || e.shiftKey) return;
      e.preventDefault();
      // An open dialog keeps what was typed into it.
      if (!document.querySelector('[role="dialog"]')) setOpen(true);
    };
    addEventListener('keydown', lead);
    return () => removeEventListener('keydown', lead);
  }, []);
  return (
    <>
      <Button
        variant="plain"
        icon={<SearchIcon />}
        aria-label={t('find.open')}
        title={t('find.open')}
        aria-haspopup="dialog"
        onClick={() => setOpen(true)}
      />
      {open && (
        <Suspense>
          <Find session={session} paths={paths} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
