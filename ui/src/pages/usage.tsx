import { FormSelect, FormSelectOption } from '@patternfly/react-core';
import { ChartBarIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { base, type Schemas } from '../api/client';
import { quantityOf } from '../api/quantities';
import { useUsage } from '../api/queries';
import { seesMoney, type Session } from '../api/session';
import { useText } from '../i18n';
import { month, monthName } from '../lib/period';
import { Quantity } from '../parts/exact';
import { Field } from '../parts/field';
import { Empty, ObjectList, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { useProject } from '../parts/project';

export function Usage({ session }: { session: Session }) {
  const { t, has, language } = useText();
  const { organization, project } = useProject();
  const [months] = useState(() => Array.from({ length: 12 }, (_, i) => month(new Date(), i)));
  const [chosen, choose] = useState(0);
  const period = months[chosen] ?? months[0]!;
  const query = useUsage(organization, project, period);
  const columns: Column<Schemas['UsageSum']>[] = [
    { id: 'resource', title: t('usage.resource'), cell: (u) => u.resourceName || u.resource },
    {
      id: 'meter',
      title: t('usage.meter'),
      cell: (u) => (has(`meter.${u.meter}`) ? t(`meter.${u.meter}` as 'meter.vcpu-seconds') : u.meter),
    },
    {
      id: 'quantity',
      title: t('usage.quantity'),
      cell: (u) => <Quantity meter={u.meter} n={quantityOf(u)} />,
    },
  ];
  const file = `${base}/v1/usage/export?${new URLSearchParams({ organization: organization ?? '', ...period })}`;
  return (
    <PageBody
      title={t('usage.title')}
      actions={
        seesMoney(session) &&
        organization && (
          <a href={file} download={`usage-${period.from.slice(0, 7)}.csv`}>
            {t('usage.export')}
          </a>
        )
      }
    >
      {!organization ? (
        <Empty title={t('usage.noOrganization')} help={t('usage.noOrganizationHelp')} icon={ChartBarIcon} />
      ) : (
        <div className="basalt-stack">
          <div className="basalt-filter">
            <Field id="usage-month" label={t('usage.month')}>
              <FormSelect id="usage-month" value={String(chosen)} onChange={(_, v) => choose(Number(v))}>
                {months.map((m, i) => (
                  <FormSelectOption key={m.from} value={String(i)} label={monthName(m, language)} />
                ))}
              </FormSelect>
            </Field>
          </div>
          {query.data?.more && <p className="basalt-note">{t('usage.more')}</p>}
          <ObjectList
            label={t('usage.title')}
            columns={columns}
            query={query}
            keyOf={(u) => `${u.project} ${u.resource} ${u.meter} ${u.from}`}
            empty={<Empty title={t('usage.empty')} help={t('usage.emptyHelp')} icon={ChartBarIcon} />}
          />
        </div>
      )}
    </PageBody>
  );
}
