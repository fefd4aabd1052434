// The search over everything: pages by their names in the current language, objects on the server. It is a combobox
// for the keyboard: arrow keys select an option while the focus stays in the input.
import { Modal, ModalBody, ModalHeader, SearchInput } from '@patternfly/react-core';
import { useEffect, useId, useState, type KeyboardEvent } from 'react';
import { useLocation } from 'wouter';
import { useFind } from '../api/find';
import type { Session } from '../api/session';
import { useText } from '../i18n';
import { recent, remember } from '../lib/recent';
import { isGroup, seen } from './nav';

const soon = 200; // ms after the last key
const longest = 128; // characters that the server accepts

interface Option {
  group: string;
  href: string;
  name: string;
}

function useOptions(session: Session, paths: readonly string[], typed: string) {
  const { t } = useText();
  const [search, setSearch] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setSearch(typed.trim()), soon);
    return () => clearTimeout(timer);
  }, [typed]);
  const { found, busy } = useFind(search, session, paths);
  const word = typed.trim().toLowerCase();
  const pages = seen(session)
    .flatMap((i) => (isGroup(i) ? i.entries : [i]))
    .map((e) => ({ group: t('find.pages'), href: e.href, name: t(e.text) }));
  if (word === '')
    return { options: [...recent().map((r): Option => ({ ...r, group: t('find.recent') })), ...pages], busy: false };
  const objects =
    search === typed.trim()
      ? found.map((f): Option => ({ group: t(`find.${f.kind}`), href: f.href, name: f.name }))
      : [];
  return {
    options: [...pages.filter((p) => p.name.toLowerCase().includes(word)), ...objects],
    busy: busy || search !== typed.trim(),
  };
}

export function Find({ session, paths, onClose }: { session: Session; paths: readonly string[]; onClose: () => void }) {
  const { t } = useText();
  const [, go] = useLocation();
  const [typed, setTyped] = useState('');
  const [at, setAt] = useState(0);
  const id = useId();
  const { options, busy } = useOptions(session, paths, typed);
  const active = Math.min(at, options.length - 1);
  const choose = (o: Option | undefined) => {
    if (!o) return;
    remember({ href: o.href, name: o.name });
    onClose();
    go(o.href);
  };
  useEffect(() => {
    // In new browsers it returns a promise, which must not become the effect's cleanup.
    void document.getElementById(`${id}-${active}`)?.scrollIntoView({ block: 'nearest' });
  }, [id, active]);
  const onKey = (e: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step) setAt((active + step + options.length) % Math.max(options.length, 1));
    else if (e.key === 'Home') setAt(0);
    else if (e.key === 'End') setAt(options.length - 1);
    else if (e.key === 'Enter') choose(options[active]);
    else return;
    e.preventDefault();
  };
  const groups = [...new Set(options.map((o) => o.group))];
  return (
    <Modal
      isOpen
      variant="small"
      position="top"
      onClose={onClose}
      aria-labelledby={`${id}-title`}
      elementToFocus={`#${CSS.escape(`${id}-input`)}`}
    >
      <ModalHeader title={t('find.title')} labelId={`${id}-title`} />
      <ModalBody>
        <SearchInput
          searchInputId={`${id}-input`}
          aria-label={t('find.label')}
          placeholder={t('find.label')}
          inputProps={{
            role: 'combobox',
            'aria-expanded': options.length > 0,
            'aria-controls': `${id}-list`,
            'aria-autocomplete': 'list',
            'aria-activedescendant': options.length > 0 ? `${id}-${active}` : undefined,
            autoComplete: 'off',
            onKeyDown: onKey,
          }}
          value={typed}
          onChange={(_, v) => (setTyped(v.slice(0, longest)), setAt(0))}
          onClear={() => (setTyped(''), setAt(0))}
          resetButtonLabel={t('common.clear')}
        />
        <div role="listbox" id={`${id}-list`} aria-label={t('find.results')} className="basalt-find" tabIndex={-1}>
          {groups.map((g, n) => (
            <div key={g} role="group" aria-labelledby={`${id}-group-${n}`}>
              <div id={`${id}-group-${n}`} role="presentation" className="basalt-find-group">
                {g}
              </div>
              {options.map(
                (o, i) =>
                  o.group === g && (
                    // The input handles the keys.
                    // eslint-disable-next-line jsx-a11y/click-events-have-key-events
                    <div
                      key={`${o.href} ${i}`}
                      id={`${id}-${i}`}
                      role="option"
                      tabIndex={-1}
                      aria-selected={i === active}
                      className="basalt-find-option"
                      onClick={() => choose(o)}
                    >
                      {o.name}
                    </div>
                  ),
              )}
            </div>
          ))}
        </div>
        <p role="status" className="basalt-note">
          {busy ? t('find.busy') : options.length === 0 ? t('find.none') : t('find.help')}
        </p>
      </ModalBody>
    </Modal>
  );
}
