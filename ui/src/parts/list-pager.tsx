// The footer of a list: the page, the range of rows and the total, and the page size.
import { Button, FormSelect, FormSelectOption } from '@patternfly/react-core';
import { AngleLeftIcon, AngleRightIcon } from '@patternfly/react-icons';
import { useText } from '../i18n';
import { sizes, type Pages } from './list-state';

interface Props {
  /** Of the list, which tells the pagers of a page apart. */
  label: string;
  pages: Pages;
  shown: number;
  next?: string;
  /** On all pages, once known. */
  total?: number;
}

export function ListPager({ label, pages, shown, next, total }: Props) {
  const { t, count, language } = useText();
  const first = pages.page === 1;
  const alone = first && !next;
  if (alone && (!pages.resize || shown === 0)) return null;
  const number = (n: number) => new Intl.NumberFormat(language).format(n);
  const from = (pages.page - 1) * (pages.size ?? 0) + 1;
  return (
    <nav className="basalt-pager" aria-label={`${t('common.pages')}: ${label}`}>
      <span className="basalt-note" aria-live="polite">
        {alone
          ? count('common.shown', shown)
          : total !== undefined && pages.size
            ? t('common.shownOf', { from: number(from), to: number(from + shown - 1), total: number(total) })
            : next
              ? t('common.shownOfMore', { n: shown })
              : count('common.shown', shown)}
      </span>
      {pages.resize && (!alone || shown > (sizes[0] ?? 0)) && (
        <FormSelect
          className="basalt-page-size"
          aria-label={t('common.pageSize')}
          value={pages.size}
          onChange={(_, v) => pages.resize?.(Number(v))}
        >
          {sizes.map((n) => (
            <FormSelectOption key={n} value={n} label={t('common.perPage', { n })} />
          ))}
        </FormSelect>
      )}
      {!alone && (
        <>
          <Button
            variant="plain"
            icon={<AngleLeftIcon />}
            aria-label={t('common.previous')}
            isDisabled={first}
            onClick={pages.previous}
          />
          <span aria-live="polite">{t('common.page', { page: pages.page })}</span>
          <Button
            variant="plain"
            icon={<AngleRightIcon />}
            aria-label={t('common.next')}
            isDisabled={!next}
            onClick={() => next && pages.next(next)}
          />
        </>
      )}
    </nav>
  );
}
