// The audit log.
import { Button, FormSelect, FormSelectOption } from '@patternfly/react-core';
import { HistoryIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { may, type Session } from '../api/session';
import { useAudit, useOrganizations, type AuditEvent } from '../api/tenant';
import { useText } from '../i18n';
import { useParams } from '../lib/address';
import { auditParams, auditQuery, narrowed, type AuditParams } from '../lib/audit';
import { CheckField } from '../parts/check-field';
import { Field } from '../parts/field';
import { Form } from '../parts/form';
import { Empty, ObjectList, usePages, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { TextField } from '../parts/text-field';
import { Time } from '../parts/time';

const most = 3; // objects that a row lists
const cleared = { actor: '', operation: '', kind: '', object: '', removed: '', from: '', to: '' };

function Narrow({ params, onChange }: { params: AuditParams; onChange: (params: Partial<AuditParams>) => void }) {
  const { t } = useText();
  const [form, setForm] = useState(params);
  const set = (name: keyof AuditParams) => (value: string) => setForm((f) => ({ ...f, [name]: value }));
  return (
    <Form label={t('audit.narrow')} body={form} busy={false} error={null} onSubmit={() => onChange(form)}>
      <div className="basalt-filters">
        <TextField
          id="audit-actor"
          label={t('audit.who')}
          help={t('audit.actorHelp')}
          value={form.actor}
          onChange={set('actor')}
        />
        <TextField
          id="audit-operation"
          label={t('audit.did')}
          help={t('audit.operationHelp')}
          value={form.operation}
          onChange={set('operation')}
        />
        <TextField
          id="audit-kind"
          label={t('audit.kind')}
          help={t('audit.kindHelp')}
          value={form.kind}
          onChange={set('kind')}
        />
        <TextField
          id="audit-object"
          label={t('audit.object')}
          help={t('audit.objectHelp')}
          value={form.object}
          onChange={set('object')}
        />
        <TextField
          id="audit-since"
          type="datetime-local"
          label={t('audit.since')}
          value={form.from}
          onChange={set('from')}
        />
        <TextField
          id="audit-until"
          type="datetime-local"
          label={t('audit.until')}
          value={form.to}
          onChange={set('to')}
        />
      </div>
      <CheckField
        id="audit-removed"
        label={t('audit.onlyRemoved')}
        path="removed"
        checked={form.removed === 'true'}
        onChange={(on) => set('removed')(on ? 'true' : '')}
      />
      <div className="basalt-actions">
        <Button type="submit" variant="secondary">
          {t('audit.show')}
        </Button>
        {narrowed(params) && (
          <Button variant="link" onClick={() => onChange(cleared)}>
            {t('audit.clear')}
          </Button>
        )}
      </div>
    </Form>
  );
}

export function Audit({ session }: { session: Session }) {
  const { t, has } = useText();
  const seller = may(session, 'reseller');
  const organizations = useOrganizations(seller).data?.items ?? [];
  const [params, set] = useParams(auditParams);
  const asked = JSON.stringify(params);
  const pages = usePages(asked);
  const query = useAudit({ ...auditQuery(params), limit: 25, continue: pages.token });
  const also = (title: string, value: string, name: 'actor' | 'object') => (
    <Button
      variant="link"
      isInline
      aria-label={t(`audit.only.${name}`, { name: title })}
      onClick={() => set({ [name]: value })}
    >
      {title}
    </Button>
  );
  const columns: Column<AuditEvent>[] = [
    { id: 'at', title: t('audit.at'), value: (e) => e.at, cell: (e) => <Time at={e.at} /> },
    {
      id: 'who',
      title: t('audit.who'),
      cell: (e) => {
        const role = `role.${e.role}`;
        return (
          <>
            {also(e.name || e.actor, e.name || e.actor, 'actor')}{' '}
            <span className="basalt-note">
              {[has(role) && t(role), e.from && t('audit.from', { address: e.from })].filter(Boolean).join(', ')}
            </span>
          </>
        );
      },
    },
    { id: 'did', title: t('audit.did'), cell: (e) => e.operation },
    {
      id: 'to',
      title: t('audit.to'),
      cell: ({ objects, more = 0 }) => {
        const rest = more + Math.max(0, objects.length - most);
        return (
          <>
            {objects.slice(0, most).map((o, i) => (
              <span key={`${o.kind}/${o.id}/${o.revision}`}>
                {i > 0 && ', '}
                {o.kind} {also(o.name || o.id, o.id, 'object')}
                {o.removed && ` (${t('audit.removed')})`}
              </span>
            ))}
            {rest > 0 && ` ${t('audit.more', { n: rest })}`}
          </>
        );
      },
    },
  ];
  const farther = query.data?.continue && query.data.items.length === 0;
  return (
    <PageBody title={t('audit.title')}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('audit.help')}</p>
        <div className="basalt-pair">
          <Field id="audit-order" label={t('audit.order')}>
            <FormSelect
              id="audit-order"
              value={params.order === 'oldest' ? 'oldest' : 'newest'}
              onChange={(_, v) => set({ order: v === 'oldest' ? v : '' })}
            >
              {(['newest', 'oldest'] as const).map((o) => (
                <FormSelectOption key={o} value={o} label={t(`audit.${o}`)} />
              ))}
            </FormSelect>
          </Field>
          {seller && (
            <Field id="audit-organization" label={t('audit.organization')}>
              <FormSelect
                id="audit-organization"
                value={params.organization}
                onChange={(_, v) => set({ organization: v })}
              >
                <FormSelectOption value="" label={may(session, 'operator') ? t('audit.everybody') : t('new.choose')} />
                {organizations.map((o) => (
                  <FormSelectOption key={o.meta.id} value={o.meta.id} label={o.spec.displayName || o.meta.name} />
                ))}
              </FormSelect>
            </Field>
          )}
        </div>
        <Narrow key={asked} params={params} onChange={set} />
        {farther && <p role="status">{t('audit.farther')}</p>}
        <ObjectList
          label={t('audit.title')}
          columns={columns}
          query={query}
          keyOf={(e) => String(e.seq)}
          pages={pages}
          empty={
            !farther && (
              <Empty
                title={t(narrowed(params) ? 'audit.nothing' : 'audit.empty')}
                help={t(narrowed(params) ? 'audit.nothingHelp' : 'audit.emptyHelp')}
                icon={HistoryIcon}
              />
            )
          }
        />
      </div>
    </PageBody>
  );
}
