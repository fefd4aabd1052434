// The first customer: an organization, a project and an administrator. After a failure, objects that were already
// created are not created again.
import { Button } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { Link } from 'wouter';
import { api, ApiError, asApiError, ok, type Schemas } from '../../api/client';
import { adminOf, LinkReady } from '../../forms/admin';
import { organizationOf } from '../../forms/organization';
import { useText } from '../../i18n';
import { problems, type SchemaName } from '../../lib/problems';
import { asCommand, asCurl } from '../../lib/shell';
import { Form } from '../../parts/form';
import { Same } from '../../parts/same';
import { TextField } from '../../parts/text-field';

type Part = 'organization' | 'project' | 'admin';

/** ofPart assigns the errors to the fields of a part, as all three parts have a meta.name. */
const ofPart = (part: Part, error: unknown): ApiError => {
  const e = asApiError(error);
  const errors = e.fields.map((f) => ({ ...f, field: `${part}.${f.field}` }));
  return new ApiError({ code: e.code, detail: e.message, hint: e.hint, errors });
};

const projectOf = (name: string, organization: string): Schemas['Project'] => ({
  kind: 'Project',
  meta: { name: name.trim(), organization },
  spec: {},
});

export function CustomerStep() {
  const text = useText();
  const { t } = text;
  const client = useQueryClient();
  const [form, setForm] = useState({ name: '', displayName: '', project: 'main', email: '' });
  const [made, setMade] = useState<{ organization: Schemas['Organization']; user: Schemas['User'] } | null>(null);
  const begun = useRef<{ organization?: Schemas['Organization']; project?: Schemas['Project'] }>({});
  const set = (name: keyof typeof form) => (v: string) => setForm((f) => ({ ...f, [name]: v }));
  const create = useMutation({
    mutationFn: async () => {
      const part = async <T,>(name: Part, made: T | undefined, make: () => Promise<T>): Promise<T> => {
        if (made) return made;
        try {
          return await make();
        } catch (e) {
          throw ofPart(name, e);
        }
      };
      const b = begun.current;
      const organization = (b.organization = await part('organization', b.organization, () =>
        ok(api.POST('/v1/organizations', { body: bodies.organization })),
      ));
      const id = organization.meta.id ?? '';
      b.project = await part('project', b.project, () =>
        ok(api.POST('/v1/projects', { body: projectOf(form.project, id) })),
      );
      const user = await part('admin', undefined, () => ok(api.POST('/v1/users', { body: adminOf(form.email, id) })));
      return { organization, user };
    },
    onSuccess: (m) => {
      begun.current = {};
      setMade(m);
    },
    onSettled: () => {
      for (const kind of ['Organization', 'Project', 'User'])
        void client.invalidateQueries({ queryKey: [kind, 'list'] });
    },
  });
  const bodies = {
    organization: organizationOf({ ...form, priceBook: '', parent: '' }),
    project: projectOf(form.project, ''),
    admin: adminOf(form.email, ''),
  };
  const faults = (part: Part, schema: SchemaName) =>
    problems(schema, bodies[part], text).map((p) => ({ ...p, path: `${part}.${p.path}` }));
  const wrong = [
    ...faults('organization', 'Organization'),
    ...faults('project', 'Project'),
    ...faults('admin', 'User'),
  ];
  const name = form.name.trim() || 'NAME';
  const email = form.email.trim() || 'E-MAIL';
  if (made)
    return (
      <>
        <LinkReady user={made.user} onClose={() => setMade(null)} />
        <p>
          {t('wizard.finished')}{' '}
          <Link href={`/organizations/${made.organization.meta.id}`}>{made.organization.meta.name}</Link>
        </p>
      </>
    );
  return (
    <Form body={bodies} wrong={wrong} busy={create.isPending} error={create.error} onSubmit={create.mutate}>
      <TextField
        id="customer-name"
        label={t('common.name')}
        help={t('cust.nameHelp')}
        path="organization.meta.name"
        value={form.name}
        onChange={set('name')}
        required
      />
      <TextField
        id="customer-display"
        label={t('cust.displayName')}
        value={form.displayName}
        onChange={set('displayName')}
      />
      <TextField
        id="customer-project"
        label={t('wizard.customerProject')}
        path="project.meta.name"
        value={form.project}
        onChange={set('project')}
        required
      />
      <TextField
        id="customer-email"
        type="email"
        label={t('wizard.customerEmail')}
        path="admin.meta.name"
        value={form.email}
        onChange={set('email')}
        required
      />
      <Same
        cli={[
          asCommand(['organization', 'create', name], { 'display-name': form.displayName.trim() }),
          asCommand(['project', 'create', form.project.trim() || 'NAME'], { organization: name }),
          asCommand(['user', 'create', email], { organization: name, grant: `admin@${name}` }),
        ].join('\n')}
        curl={[
          asCurl('POST', '/v1/organizations', organizationOf({ ...form, name, priceBook: '', parent: '' })),
          asCurl('POST', '/v1/projects', projectOf(form.project, name)),
          asCurl('POST', '/v1/users', adminOf(email, name)),
        ].join('\n')}
      />
      <div>
        <Button type="submit" isLoading={create.isPending} isDisabled={create.isPending}>
          {t('wizard.customerMake')}
        </Button>
      </div>
    </Form>
  );
}
