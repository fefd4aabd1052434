import { Card, CardBody, CardFooter, CardTitle } from '@patternfly/react-core';
import { Link } from 'wouter';
import { useAlerts } from '../../api/cluster';
import { useText } from '../../i18n';
import { keyOf } from '../../lib/alert';
import { AlertRow } from '../../parts/alert-row';
import { ErrorAlert } from '../../parts/error';

const worst = 3;

/** WorstAlerts shows the most severe alerts to operators. */
export function WorstAlerts() {
  const { t, count } = useText();
  const query = useAlerts({ limit: 5 });
  const { items = [], critical = 0, warning = 0 } = query.data ?? {};
  return (
    <Card>
      <CardTitle component="h2">{t('alert.title')}</CardTitle>
      <CardBody className="basalt-stack">
        <ErrorAlert error={query.error} />
        {query.data && (
          <p>
            {critical + warning === 0
              ? t('alert.none')
              : `${count('alert.critical', critical)}, ${count('alert.warning', warning)}`}
          </p>
        )}
        {items.slice(0, worst).map((a) => (
          <AlertRow key={keyOf(a)} alert={a} level="h3" />
        ))}
      </CardBody>
      <CardFooter>
        <Link href="/alerts">{t('alert.all')}</Link>
      </CardFooter>
    </Card>
  );
}
