// A list's filter: what is typed is searched on the server, soon, or at once
// with Enter. "/" leads to it.
import { SearchInput } from '@patternfly/react-core';
import { useEffect, useRef, useState } from 'react';
import { useText } from '../i18n';
import type { Filter } from './list-state';

const soon = 250; // ms after the last key
const longest = 128; // characters that the server takes

const typing = (at: EventTarget | null) =>
  at instanceof HTMLElement && (at.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(at.tagName));

export function ListFilter({ search, set }: Filter) {
  const { t } = useText();
  const [value, setValue] = useState(search);
  const [known, setKnown] = useState(search);
  const input = useRef<HTMLInputElement>(null);
  if (known !== search) {
    // Somebody else has changed it: a link, or the way back.
    setKnown(search);
    if (search !== value.trim()) setValue(search);
  }
  const send = (v: string) => (setKnown(v.trim()), set(v.trim()));
  // set stays the same: while a list changes all the time, this must come to its end.
  useEffect(() => {
    if (value.trim() === search) return;
    const timer = setTimeout(() => (setKnown(value.trim()), set(value.trim())), soon);
    return () => clearTimeout(timer);
  }, [value, search, set]);
  useEffect(() => {
    const lead = (e: KeyboardEvent) => {
      if (
        e.key !== '/' ||
        e.ctrlKey ||
        e.metaKey ||
        e.altKey ||
        typing(e.target) ||
        document.querySelector('[role="dialog"]')
      )
        return;
      e.preventDefault();
      input.current?.focus();
    };
    addEventListener('keydown', lead);
    return () => removeEventListener('keydown', lead);
  }, []);
  return (
    <form role="search" className="basalt-filter" onSubmit={(e) => (e.preventDefault(), send(value))}>
      <SearchInput
        ref={input}
        aria-label={t('common.filter')}
        placeholder={t('common.filter')}
        value={value}
        resetButtonLabel={t('common.clear')}
        onChange={(_, v) => setValue(v.slice(0, longest))}
        onSearch={(e) => (e.preventDefault(), send(value))}
        onClear={() => (setValue(''), send(''))}
      />
    </form>
  );
}
