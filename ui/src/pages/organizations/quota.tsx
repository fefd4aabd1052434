// A customer's quota, beside what is in use of it.
import { Button, Card, CardBody, Form } from '@patternfly/react-core';
import { useState } from 'react';
import { useSaveOrganization, type Organization } from '../../api/customers';
import { atField, elsewhere } from '../../api/fields';
import { useQuota } from '../../api/queries';
import { useText } from '../../i18n';
import { formatBytes } from '../../lib/format';
import { flags, isSize, limitsOf, quotaForm, quotaKey, quotas, wrong, type Quota } from '../../lib/quota';
import { asCurl, lines, quote } from '../../lib/shell';
import { ErrorAlert } from '../../parts/error';
import { Same } from '../../parts/same';
import { TextField } from '../../parts/text-field';

export function QuotaEditor({ organization: o, owns }: { organization: Organization; owns: boolean }) {
  const { t, language } = useText();
  const [form, setForm] = useState(() => quotaForm(o.spec.quota));
  const uses = useQuota('', o.meta.id).data?.uses ?? {};
  const [base, setBase] = useState(o); // what the form shows: a change by others meanwhile is a conflict, which the server says
  const save = useSaveOrganization(base, setBase);
  const bad = wrong(form);
  const limits = bad.length === 0 ? limitsOf(form) : {};
  const label = (q: Quota) => (isSize(q) ? t('cust.quotaGib', { name: t(quotaKey(q)) }) : t(quotaKey(q)));
  const used = (q: Quota) => t('cust.quotaUsed', { used: isSize(q) ? formatBytes(uses[q] ?? 0, language) : new Intl.NumberFormat(language).format(uses[q] ?? 0) });
  const paths = quotas.map((q) => `spec.quota.${q}`);
  return (
    <Card>
      <CardBody>
        <Form className="basalt-form" onSubmit={(e) => (e.preventDefault(), bad.length === 0 && save.mutate({ ...base.spec, quota: limits }))}>
          <p>{t('cust.quotaHelp')}</p>
          <ErrorAlert error={elsewhere(save.error, paths)} />
          <div role="status">{save.isSuccess && t('cust.quotaSaved')}</div>
          <div className="basalt-columns">
            {quotas.map((q) => (
              <TextField
                key={q} id={`quota-${q}`} label={label(q)} help={used(q)} value={form[q]} readOnly={!owns}
                error={bad.includes(q) ? t('cust.quotaWrong') : atField(save.error, `spec.quota.${q}`)}
                onChange={(v) => (save.reset(), setForm((f) => ({ ...f, [q]: v })))}
              />
            ))}
          </div>
          {owns && (
            <>
              <div><Button type="submit" isLoading={save.isPending} isDisabled={save.isPending || bad.length > 0}>{t('cust.save')}</Button></div>
              <Same cli={lines([`basalt organization set ${quote(o.meta.name)}`, ...flags(limits)])} curl={asCurl('PUT', `/v1/organizations/${o.meta.id}`, { kind: o.kind, meta: { name: o.meta.name, revision: base.meta.revision }, spec: { ...base.spec, quota: limits } })} />
            </>
          )}
        </Form>
      </CardBody>
    </Card>
  );
}
