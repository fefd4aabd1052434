// The settings of a list: its columns, density, and order where it has no headers to click.
import { Button, Checkbox, FormSelect, FormSelectOption, Radio } from '@patternfly/react-core';
import { DownloadIcon, SlidersHIcon } from '@patternfly/react-icons';
import { useId, useState, type ReactNode } from 'react';
import { useText } from '../i18n';
import { directionOf, fieldOf } from '../lib/order';
import { viewOf, type Density, type View } from '../lib/view';
import type { Column } from './list-table';

const keyOf = (list: string) => `basalt.list.${list}`;

/** useView returns the last settings of a list in this browser. */
export function useView(list: string): [View, (v: View) => void] {
  const [kept, set] = useState(() => ({ list, view: viewOf(localStorage.getItem(keyOf(list))) }));
  const write = (view: View) => (localStorage.setItem(keyOf(list), JSON.stringify(view)), set({ list, view }));
  return [kept.view, write];
}

interface Props<T> {
  columns: readonly Column<T>[];
  view: View;
  setView: (v: View) => void;
  sort: string;
  setSort: (sort: string) => void;
  fieldOfColumn: (c: Column<T>) => string | undefined;
  onExport: () => void;
  exporting: boolean;
  children: ReactNode;
}

const densities: readonly Density[] = ['compact', 'comfortable'];

export function ListView<T>(props: Props<T>) {
  const { columns, view, setView, onExport, exporting, children } = props;
  const { t } = useText();
  const id = useId();
  const [open, setOpen] = useState(false);
  const shown = (c: Column<T>) => view.columns[c.id] ?? !c.extra;
  return (
    <>
      <div className="basalt-toolbar">
        {children}
        <div className="basalt-toolbar-end">
          <Button
            variant="plain"
            icon={<SlidersHIcon />}
            aria-expanded={open}
            aria-controls={id}
            onClick={() => setOpen(!open)}
          >
            {t('list.view')}
          </Button>
          <Button variant="plain" icon={<DownloadIcon />} isLoading={exporting} onClick={onExport}>
            {t('list.export')}
          </Button>
        </div>
      </div>
      <div id={id} role="group" aria-label={t('list.view')} className="basalt-view" hidden={!open}>
        {open && (
          <>
            <fieldset>
              <legend>{t('list.columns')}</legend>
              {columns.slice(1).map((c) => (
                <Checkbox
                  key={c.id}
                  id={`${id}-${c.id}`}
                  label={c.title}
                  isChecked={shown(c)}
                  onChange={(_, on) => setView({ ...view, columns: { ...view.columns, [c.id]: on } })}
                />
              ))}
            </fieldset>
            <fieldset>
              <legend>{t('list.density')}</legend>
              {densities.map((d) => (
                <Radio
                  key={d}
                  id={`${id}-${d}`}
                  name={`${id}-density`}
                  label={t(`list.${d}`)}
                  isChecked={view.density === d}
                  onChange={() => setView({ ...view, density: d })}
                />
              ))}
            </fieldset>
            <Order {...props} />
          </>
        )}
      </div>
    </>
  );
}

function Order<T>({ columns, sort, setSort, fieldOfColumn }: Props<T>) {
  const { t } = useText();
  const id = useId();
  const field = fieldOf(sort);
  const descending = directionOf(sort, field) === 'descending';
  const sortable = columns.filter((c) => fieldOfColumn(c));
  if (sortable.length === 0) return null;
  return (
    <fieldset>
      <legend>{t('list.order')}</legend>
      <FormSelect
        aria-label={t('list.order')}
        value={field}
        onChange={(_, v) => setSort(descending ? `-${v}` : v)}
        id={`${id}-order`}
      >
        {!sortable.some((c) => fieldOfColumn(c) === field) && <FormSelectOption value={field} label="–" />}
        {sortable.map((c) => (
          <FormSelectOption key={c.id} value={fieldOfColumn(c)} label={c.title} />
        ))}
      </FormSelect>
      <Checkbox
        id={`${id}-descending`}
        label={t('list.descending')}
        isChecked={descending}
        onChange={(_, on) => setSort(on ? `-${field}` : field)}
      />
    </fieldset>
  );
}
