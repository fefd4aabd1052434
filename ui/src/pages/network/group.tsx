// One security group and its rules, which are saved together.
import {
  Alert,
  Button,
  Card,
  CardBody,
  CardTitle,
  FormFieldGroup,
  FormFieldGroupHeader,
  FormSelect,
  FormSelectOption,
  TextInput,
} from '@patternfly/react-core';
import { TrashIcon } from '@patternfly/react-icons';
import { useSecurityGroup, useSecurityGroups, type SecurityGroup } from '../../api/network';
import { securityGroups } from '../../api/resource';
import { may, type Session } from '../../api/session';
import { mostChoices } from '../../api/storage';
import { Loading } from '../../parts/loading';
import { useText } from '../../i18n';
import { draftOf, hasPorts, newRule, ruleOf, type RuleDraft } from '../../lib/rule';
import { groupCommand, ruleText } from '../../lib/commands';
import { Conflict } from '../../parts/conflict';
import { useEdit } from '../../parts/edit';
import { ErrorAlert } from '../../parts/error';
import { Field } from '../../parts/field';
import { Form } from '../../parts/form';
import { PageBody } from '../../parts/page';
import { Same } from '../../parts/same';

const protocols = ['tcp', 'udp', 'icmp', 'icmp6', 'any'] as const;

interface RowProps {
  n: number;
  rule: RuleDraft;
  self: string;
  groups: SecurityGroup[];
  editable: boolean;
  set: (r: RuleDraft) => void;
  remove: () => void;
}

function Rule({ n, rule, self, groups, editable, set, remove }: RowProps) {
  const { t } = useText();
  const id = (what: string) => `rule-${n}-${what}`;
  const path = `spec.rules[${n}]`;
  return (
    <FormFieldGroup
      header={
        <FormFieldGroupHeader
          titleText={{ text: t('sg.rule', { n: n + 1 }), id: id('title') }}
          actions={
            editable && (
              <Button
                variant="plain"
                icon={<TrashIcon />}
                aria-label={t('sg.removeRule', { n: n + 1 })}
                onClick={remove}
              />
            )
          }
        />
      }
    >
      <div className="basalt-rule">
        <Field id={id('direction')} label={t('sg.direction')} path={`${path}.direction`}>
          <FormSelect
            id={id('direction')}
            isDisabled={!editable}
            value={rule.direction}
            onChange={(_, v) => set({ ...rule, direction: v as RuleDraft['direction'] })}
          >
            {(['ingress', 'egress'] as const).map((d) => (
              <FormSelectOption key={d} value={d} label={t(`sg.${d}`)} />
            ))}
          </FormSelect>
        </Field>
        <Field id={id('protocol')} label={t('sg.protocol')} path={`${path}.protocol`}>
          <FormSelect
            id={id('protocol')}
            isDisabled={!editable}
            value={rule.protocol}
            onChange={(_, v) => set({ ...rule, protocol: v as RuleDraft['protocol'] })}
          >
            {protocols.map((p) => (
              <FormSelectOption key={p} value={p} label={p === 'any' ? t('sg.any') : p} />
            ))}
          </FormSelect>
        </Field>
        {hasPorts(rule.protocol) && (
          <Field
            id={id('ports')}
            label={t('sg.ports')}
            help={editable ? t('sg.portsHelp') : undefined}
            path={`${path}.ports`}
          >
            <TextInput
              id={id('ports')}
              isDisabled={!editable}
              value={rule.ports}
              onChange={(_, ports) => set({ ...rule, ports })}
              autoComplete="off"
            />
          </Field>
        )}
        <Field id={id('remote')} label={t('sg.remote')} path={`${path}.group`}>
          <FormSelect
            id={id('remote')}
            isDisabled={!editable}
            value={rule.remote}
            onChange={(_, remote) => set({ ...rule, remote })}
          >
            <FormSelectOption value="" label={t('sg.everywhere')} />
            <FormSelectOption value="cidr" label={t('sg.addresses')} />
            <FormSelectOption value={self} label={t('sg.thisGroup')} />
            {groups
              .filter((g) => g.meta.id !== self)
              .map((g) => (
                <FormSelectOption key={g.meta.id} value={g.meta.id} label={t('sg.group', { name: g.meta.name })} />
              ))}
          </FormSelect>
        </Field>
        {rule.remote === 'cidr' && (
          <Field id={id('cidr')} label={t('sg.cidr')} path={`${path}.cidr`} required>
            <TextInput
              id={id('cidr')}
              isDisabled={!editable}
              isRequired
              value={rule.cidr}
              onChange={(_, cidr) => set({ ...rule, cidr })}
              autoComplete="off"
              spellCheck={false}
            />
          </Field>
        )}
      </div>
    </FormFieldGroup>
  );
}

interface Fields {
  rules: RuleDraft[];
}

const formOf = (g: SecurityGroup | undefined): Fields => ({ rules: (g?.spec.rules ?? []).map(draftOf) });

function Editor({ group, editable }: { group: SecurityGroup; editable: boolean }) {
  const { t } = useText();
  const others = useSecurityGroups({ project: group.meta.project, limit: mostChoices }).data?.items ?? [];
  const edit = useEdit<SecurityGroup, Fields>({
    of: securityGroups,
    object: group,
    fields: formOf,
    body: (g, { rules }) => ({ kind: group.kind, meta: (g ?? group).meta, spec: { rules: rules.map(ruleOf) } }),
  });
  const {
    form: { rules },
    body,
  } = edit;
  const setRules = edit.set('rules');
  const groupName = (id: string) =>
    id === group.meta.id ? 'self' : (others.find((g) => g.meta.id === id)?.meta.name ?? id);
  return (
    <Form
      label={t('sg.rulesTitle')}
      long
      schema="SecurityGroup"
      body={edit.body}
      busy={edit.busy}
      error={edit.error}
      onSubmit={edit.submit}
    >
      <div role="status">{edit.saved && <Alert isInline component="p" variant="success" title={t('sg.saved')} />}</div>
      <Conflict
        edit={edit}
        label={() => t('sg.oneRule')}
        text={(_, r) => ruleText(ruleOf(r as RuleDraft), groupName)}
      />
      {rules.length === 0 && <p>{t('sg.noRules')}</p>}
      {rules.map((rule, n) => (
        <Rule
          key={rule.key}
          n={n}
          rule={rule}
          self={group.meta.id ?? ''}
          groups={others}
          editable={editable}
          set={(r) => setRules(rules.map((x) => (x.key === r.key ? r : x)))}
          remove={() => setRules(rules.filter((x) => x.key !== rule.key))}
        />
      ))}
      {editable && (
        <div className="basalt-actions">
          <Button type="submit" isLoading={edit.busy} isDisabled={edit.busy || edit.gone}>
            {t('sg.save')}
          </Button>
          <Button variant="secondary" onClick={() => setRules([...rules, newRule()])}>
            {t('sg.add')}
          </Button>
        </div>
      )}
      {editable && (
        <Same cli={groupCommand('set', { ...body, meta: { name: group.meta.name } }, groupName)} curl={edit.curl} />
      )}
    </Form>
  );
}

export function Group({ session, id }: { session: Session; id: string }) {
  const { t } = useText();
  const query = useSecurityGroup(id);
  const above = { href: '/security-groups', title: t('sg.title') };
  if (query.isPending) return <Loading />;
  if (!query.data)
    return (
      <PageBody title={id} above={above}>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
      </PageBody>
    );
  return (
    <PageBody title={query.data.meta.name} above={above}>
      <Card>
        <CardTitle component="h2">{t('sg.rulesTitle')}</CardTitle>
        <CardBody className="basalt-stack">
          <p className="basalt-note">{t('sg.deny')}</p>
          <Editor group={query.data} editable={may(session, 'member')} />
        </CardBody>
      </Card>
    </PageBody>
  );
}
