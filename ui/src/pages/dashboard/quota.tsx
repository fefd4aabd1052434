import { Card, CardBody, CardTitle, Progress, ProgressVariant } from '@patternfly/react-core';
import { useQuota } from '../../api/queries';
import { useText } from '../../i18n';
import { formatBytes } from '../../lib/format';
import { quotas } from '../../lib/quota';
import { ErrorAlert } from '../../parts/error';
import { useProject } from '../../parts/project';

export function QuotaCard() {
  const { t, has, language } = useText();
  const { project, organization } = useProject();
  const query = useQuota(project, organization);
  const { limits = {}, uses = {} } = query.data ?? {};
  // Object counts have default limits: one is shown only when its use comes near it.
  const shown = (n: string) =>
    (quotas as readonly string[]).includes(n)
      ? limits[n] !== undefined || !!uses[n]
      : limits[n] !== undefined && 2 * (uses[n] ?? 0) >= limits[n];
  const names = [...new Set([...Object.keys(limits), ...Object.keys(uses)])].filter(shown);
  const show = (name: string, n: number) =>
    name.endsWith('Bytes') ? formatBytes(n, language) : new Intl.NumberFormat(language).format(n);
  return (
    <Card>
      <CardTitle component="h2">{t('dash.quota')}</CardTitle>
      <CardBody className="basalt-stack">
        <ErrorAlert error={query.error} />
        {!project && !organization && <p className="basalt-note">{t('dash.pickProject')}</p>}
        {query.data && names.length === 0 && <p className="basalt-note">{t('dash.noQuota')}</p>}
        {names.map((name) => {
          const key = `quota.${name}`;
          const title = has(key) ? t(key) : name;
          const [used, limit] = [uses[name] ?? 0, limits[name]];
          if (limit === undefined)
            return (
              <p key={name}>
                {title}: {t('dash.noLimit', { used: show(name, used) })}
              </p>
            );
          const percent = limit > 0 ? Math.min(100, (100 * used) / limit) : 100;
          return (
            <Progress
              key={name}
              id={`quota-${name}`}
              title={title}
              value={percent}
              size="sm"
              label={t('dash.of', { used: show(name, used), limit: show(name, limit) })}
              valueText={t('dash.of', { used: show(name, used), limit: show(name, limit) })}
              variant={percent >= 100 ? ProgressVariant.danger : percent >= 80 ? ProgressVariant.warning : undefined}
            />
          );
        })}
      </CardBody>
    </Card>
  );
}
