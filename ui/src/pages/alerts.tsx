import { Button } from '@patternfly/react-core';
import { AngleLeftIcon, AngleRightIcon, CheckCircleIcon } from '@patternfly/react-icons';
import { useAlerts } from '../api/cluster';
import { Loading } from '../parts/loading';
import { useText } from '../i18n';
import { keyOf } from '../lib/alert';
import { formatTime } from '../lib/format';
import { AlertRow } from '../parts/alert-row';
import { Copyable } from '../parts/copyable';
import { ErrorAlert } from '../parts/error';
import { Empty, usePages } from '../parts/list';
import { PageBody } from '../parts/page';

export function Alerts() {
  const { t, count, language } = useText();
  const pages = usePages();
  const query = useAlerts({ limit: 25, continue: pages.token });
  const { items = [], critical = 0, warning = 0, asOf, continue: next } = query.data ?? {};
  const first = pages.page === 1;
  return (
    <PageBody title={t('alert.title')}>
      <div className="basalt-stack">
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        {query.isPending && <Loading />}
        {query.data && critical + warning === 0 && (
          <Empty title={t('alert.none')} help={t('alert.noneHelp')} icon={CheckCircleIcon} />
        )}
        {critical + warning > 0 && (
          <p role="status">
            {count('alert.critical', critical)}, {count('alert.warning', warning)}
          </p>
        )}
        <ul className="basalt-events basalt-stack" aria-label={t('alert.title')}>
          {items.map((a) => (
            <li key={keyOf(a)}>
              <AlertRow alert={a} level="h2" />
            </li>
          ))}
        </ul>
        {(next || !first) && (
          <nav className="basalt-pager" aria-label={t('common.pages')}>
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
          </nav>
        )}
        {asOf && <p className="basalt-note">{t('alert.asOf', { at: formatTime(asOf, language) })}</p>}
        <Copyable label={t('op.cli')} text="basalt alerts" />
      </div>
    </PageBody>
  );
}
