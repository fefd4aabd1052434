// One security group and its rules, which are saved together.
import { Alert, Button, Card, CardBody, CardTitle, Form, FormFieldGroup, FormFieldGroupHeader, FormSelect, FormSelectOption, TextInput } from '@patternfly/react-core';
import { TrashIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { elsewhere, useFieldErrors, type FieldErrors } from '../../api/fields';
import { putGroup, useSecurityGroup, useSecurityGroups, type SecurityGroup } from '../../api/network';
import { may, type Session } from '../../api/session';
import { mostChoices } from '../../api/storage';
import { Loading } from '../../app';
import { useText } from '../../i18n';
import { draftOf, hasPorts, newRule, ruleOf, type RuleDraft } from '../../lib/rule';
import { groupCommand } from '../../lib/commands';
import { asCurl } from '../../lib/shell';
import { ErrorAlert } from '../../parts/error';
import { Field } from '../../parts/field';
import { PageBody } from '../../parts/page';
import { Same } from '../../parts/same';

const protocols = ['tcp', 'udp', 'icmp', 'icmp6', 'any'] as const;

interface RowProps {
  n: number;
  rule: RuleDraft;
  self: string;
  groups: SecurityGroup[];
  errors: FieldErrors;
  editable: boolean;
  set: (r: RuleDraft) => void;
  remove: () => void;
}

function Rule({ n, rule, self, groups, errors, editable, set, remove }: RowProps) {
  const { t } = useText();
  const id = (what: string) => `rule-${n}-${what}`;
  const path = `spec.rules[${n}]`;
  return (
    <FormFieldGroup
      header={
        <FormFieldGroupHeader
          titleText={{ text: t('sg.rule', { n: n + 1 }), id: id('title') }}
          actions={editable && <Button variant="plain" icon={<TrashIcon />} aria-label={t('sg.removeRule', { n: n + 1 })} onClick={remove} />}
        />
      }
    >
      <div className="basalt-rule">
        <Field id={id('direction')} label={t('sg.direction')} path={`${path}.direction`} errors={errors}>
          <FormSelect id={id('direction')} isDisabled={!editable} value={rule.direction} onChange={(_, v) => set({ ...rule, direction: v as RuleDraft['direction'] })}>
            {(['ingress', 'egress'] as const).map((d) => <FormSelectOption key={d} value={d} label={t(`sg.${d}`)} />)}
          </FormSelect>
        </Field>
        <Field id={id('protocol')} label={t('sg.protocol')} path={`${path}.protocol`} errors={errors}>
          <FormSelect id={id('protocol')} isDisabled={!editable} value={rule.protocol} onChange={(_, v) => set({ ...rule, protocol: v as RuleDraft['protocol'] })}>
            {protocols.map((p) => <FormSelectOption key={p} value={p} label={p === 'any' ? t('sg.any') : p} />)}
          </FormSelect>
        </Field>
        {hasPorts(rule.protocol) && (
          <Field id={id('ports')} label={t('sg.ports')} help={editable ? t('sg.portsHelp') : undefined} path={`${path}.ports`} errors={errors}>
            <TextInput id={id('ports')} isDisabled={!editable} value={rule.ports} onChange={(_, ports) => set({ ...rule, ports })} autoComplete="off" />
          </Field>
        )}
        <Field id={id('remote')} label={t('sg.remote')} path={`${path}.group`} errors={errors}>
          <FormSelect id={id('remote')} isDisabled={!editable} value={rule.remote} onChange={(_, remote) => set({ ...rule, remote })}>
            <FormSelectOption value="" label={t('sg.everywhere')} />
            <FormSelectOption value="cidr" label={t('sg.addresses')} />
            <FormSelectOption value={self} label={t('sg.thisGroup')} />
            {groups.filter((g) => g.meta.id !== self).map((g) => <FormSelectOption key={g.meta.id} value={g.meta.id} label={t('sg.group', { name: g.meta.name })} />)}
          </FormSelect>
        </Field>
        {rule.remote === 'cidr' && (
          <Field id={id('cidr')} label={t('sg.cidr')} path={`${path}.cidr`} errors={errors} required>
            <TextInput id={id('cidr')} isDisabled={!editable} isRequired value={rule.cidr} onChange={(_, cidr) => set({ ...rule, cidr })} autoComplete="off" spellCheck={false} />
          </Field>
        )}
      </div>
    </FormFieldGroup>
  );
}

function Editor({ group, newest, editable, onSaved, onReload }: { group: SecurityGroup; newest: SecurityGroup; editable: boolean; onSaved: () => void; onReload: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const others = useSecurityGroups({ project: group.meta.project, limit: mostChoices }).data?.items ?? [];
  const [rules, setRules] = useState(() => (group.spec.rules ?? []).map((r, i) => ({ key: i, draft: draftOf(r) })));
  const [next, setNext] = useState(rules.length);
  const wanted: SecurityGroup = { ...group, spec: { rules: rules.map((r) => ruleOf(r.draft)) } };
  const save = useMutation({
    mutationFn: () => putGroup(wanted),
    onSuccess: (g) => (client.setQueryData(['SecurityGroup', 'one', g.meta.id], g), onSaved()),
  });
  const errors = useFieldErrors(save.error);
  const elsewhereChanged = (newest.meta.revision ?? 0) > (group.meta.revision ?? 0) && !save.isSuccess;
  const groupName = (id: string) => (id === group.meta.id ? 'self' : (others.find((g) => g.meta.id === id)?.meta.name ?? id));
  const paths = rules.flatMap((_, i) => ['direction', 'protocol', 'ports', 'group', 'cidr'].map((f) => `spec.rules[${i}].${f}`));
  return (
    <Form aria-label={t('sg.rulesTitle')} onSubmit={(e) => (e.preventDefault(), save.mutate())}>
      <ErrorAlert error={elsewhere(save.error, paths)} />
      {elsewhereChanged && <Alert isInline isLiveRegion component="p" variant="warning" title={t('sg.changed')} actionLinks={<Button variant="link" isInline onClick={onReload}>{t('sg.reload')}</Button>} />}
      {rules.length === 0 && <p>{t('sg.noRules')}</p>}
      {rules.map(({ key, draft }, n) => (
        <Rule
          key={key} n={n} rule={draft} self={group.meta.id ?? ''} groups={others} errors={errors} editable={editable}
          set={(d) => setRules((all) => all.map((r) => (r.key === key ? { key, draft: d } : r)))}
          remove={() => (save.reset(), setRules((all) => all.filter((r) => r.key !== key)))}
        />
      ))}
      {editable && (
        <div className="basalt-actions">
          <Button type="submit" isLoading={save.isPending} isDisabled={save.isPending}>{t('sg.save')}</Button>
          <Button variant="secondary" onClick={() => (setRules((all) => [...all, { key: next, draft: newRule() }]), setNext(next + 1))}>{t('sg.add')}</Button>
        </div>
      )}
      {editable && <Same cli={groupCommand('set', { ...wanted, meta: { name: group.meta.name } }, groupName)} curl={asCurl('PUT', `/v1/security-groups/${group.meta.id}`, { kind: wanted.kind, meta: wanted.meta, spec: wanted.spec })} />}
    </Form>
  );
}

export function Group({ session, id }: { session: Session; id: string }) {
  const { t } = useText();
  const query = useSecurityGroup(id);
  const [edited, setEdited] = useState<SecurityGroup | null>(null);
  const [saved, setSaved] = useState(false);
  const above = { href: '/security-groups', title: t('sg.title') };
  if (query.isPending) return <Loading />;
  if (!query.data) return <PageBody title={id} above={above}><ErrorAlert error={query.error} onRetry={() => void query.refetch()} /></PageBody>;
  // The editor keeps what it began with: the watch must not take away what was typed.
  const begun = edited ?? query.data;
  if (!edited) setEdited(query.data);
  const load = (wasSaved: boolean) => {
    setEdited(null);
    setSaved(wasSaved);
  };
  return (
    <PageBody title={begun.meta.name} above={above}>
      <Card>
        <CardTitle component="h2">{t('sg.rulesTitle')}</CardTitle>
        <CardBody className="basalt-stack">
          <p className="basalt-note">{t('sg.deny')}</p>
          <div role="status">{saved && <Alert isInline component="p" variant="success" title={t('sg.saved')} />}</div>
          <Editor key={begun.meta.revision} group={begun} newest={query.data} editable={may(session, 'member')} onSaved={() => load(true)} onReload={() => load(false)} />
        </CardBody>
      </Card>
    </PageBody>
  );
}
