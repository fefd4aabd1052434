// A list's filters: text is searched on the server after a short pause, or at once with Enter; labels with Enter or
// when the field is left. "/" focuses the search.
import { FormSelect, FormSelectOption, SearchInput, TextInput } from '@patternfly/react-core';
import { useEffect, useRef, useState } from 'react';
import { useText } from '../i18n';
import type { Facet } from '../lib/narrow';

const soon = 250; // ms after the last key
const longest = 128; // characters that the server accepts
const longestLabels = 1024;

const typing = (at: EventTarget | null) =>
  at instanceof HTMLElement && (at.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(at.tagName));

/** Search is the current search text, and a function that sets another. */
export interface Search {
  search: string;
  set: (search: string) => void;
}

/** label is that of the list, which tells the searches of a page apart. */
export function ListFilter({ label, search, set }: Search & { label: string }) {
  const { t } = useText();
  const [value, setValue] = useState(search);
  const [known, setKnown] = useState(search);
  const input = useRef<HTMLInputElement>(null);
  if (known !== search) {
    // It was changed elsewhere: by a link, or by going back.
    setKnown(search);
    if (search !== value.trim()) setValue(search);
  }
  const send = (v: string) => (setKnown(v.trim()), set(v.trim()));
  // set must be stable: while a list changes continuously, this timeout must still elapse.
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
    <form
      role="search"
      aria-label={label}
      className="basalt-filter"
      onSubmit={(e) => (e.preventDefault(), send(value))}
    >
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

export const FacetSelect = ({ of, value, set }: { of: Facet; value: string; set: (v: string) => void }) => (
  <FormSelect
    id={`by-${of.id}`}
    className="basalt-facet"
    aria-label={of.label}
    value={value}
    onChange={(_, v) => set(v)}
  >
    <FormSelectOption value="" label={of.any} />
    {value !== '' && !of.options.some((o) => o.value === value) && <FormSelectOption value={value} label={value} />}
    {of.options.map((o) => (
      <FormSelectOption key={o.value} {...o} />
    ))}
  </FormSelect>
);

/** LabelFilter accepts a label selector; the server reports invalid ones. */
export function LabelFilter({ value, set }: { value: string; set: (v: string) => void }) {
  const { t } = useText();
  const [typed, setTyped] = useState(value);
  const [known, setKnown] = useState(value);
  if (known !== value) {
    setKnown(value);
    setTyped(value);
  }
  const send = () => typed.trim() !== value && set(typed.trim());
  return (
    <form className="basalt-facet" onSubmit={(e) => (e.preventDefault(), send())}>
      <TextInput
        type="text"
        aria-label={t('list.labels')}
        placeholder={t('list.labelsExample')}
        value={typed}
        onChange={(_, v) => setTyped(v.slice(0, longestLabels))}
        onBlur={send}
        autoComplete="off"
        spellCheck={false}
      />
    </form>
  );
}
