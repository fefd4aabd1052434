// The wizard from an empty cluster to the first customer and an instance that uses a GPU. Completed steps are derived
// from the existing objects; each step has an address, so that users can continue where they stopped.
import { Alert, Button, Card, CardBody, CardTitle, Label } from '@patternfly/react-core';
import { CheckCircleIcon } from '@patternfly/react-icons';
import { lazy, useEffect, type ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { useThere, type There } from '../../api/setup';
import type { Session } from '../../api/session';
import { Loading } from '../../parts/loading';
import { BrandingForm, LogoForm } from '../../forms/branding';
import { useText } from '../../i18n';
import { done, example, next, remember, remembered, steps, type Step } from '../../lib/setup';
import { ErrorAlert } from '../../parts/error';
import { PageBody } from '../../parts/page';
import { Views } from '../../parts/views';

const Credentials = lazy(() => import('../account/credentials').then((m) => ({ default: m.Credentials })));
const ofCluster = () => import('./cluster');
const NodesStep = lazy(() => ofCluster().then((m) => ({ default: m.NodesStep })));
const NetworkStep = lazy(() => ofCluster().then((m) => ({ default: m.NetworkStep })));
const AddressStep = lazy(() => ofCluster().then((m) => ({ default: m.AddressStep })));
const MachineStep = lazy(() => ofCluster().then((m) => ({ default: m.MachineStep })));
const CustomerStep = lazy(() => import('./customer').then((m) => ({ default: m.CustomerStep })));
const ImagesStep = lazy(() => import('./images').then((m) => ({ default: m.ImagesStep })));
const SizesStep = lazy(() => import('./sizes').then((m) => ({ default: m.SizesStep })));
const Sample = lazy(() => import('../prices/sample').then((m) => ({ default: m.Sample })));
const Editor = lazy(() => import('../prices/book').then((m) => ({ default: m.Editor })));

/** have lists what already exists for a step, unless its body shows that. */
function have(step: Step, x: There): string[] {
  switch (step) {
    case 'brand':
      return x.branding.productName ? [x.branding.productName] : [];
    case 'prices':
      return x.books.map((b) => `${b.meta.name} (${b.spec.currency})`);
    case 'images':
      return x.images.map((i) => i.meta.name);
    case 'sizes':
      return [...x.flavors, ...x.pools].map((o) => o.meta.name);
    case 'customer':
      return x.organizations.map((o) => o.meta.name);
    default:
      return [];
  }
}

/** Steps that list what already exists above their body. */
const listed = new Set<Step>(['prices', 'images', 'sizes', 'customer']);

function Body({ step, there, session }: { step: Step; there: There; session: Session }): ReactNode {
  const { t } = useText();
  const book = there.books.find((b) => b.meta.name === 'default') ?? there.books[0];
  switch (step) {
    case 'you':
      return <Credentials session={session} />;
    case 'nodes':
      return <NodesStep nodes={there.nodes} />;
    case 'network':
      return <NetworkStep external={there.external} />;
    case 'address':
      return <AddressStep address={there.address} />;
    case 'brand':
      return (
        <>
          <BrandingForm branding={there.branding} />
          <LogoForm />
        </>
      );
    case 'prices':
      return (
        <>
          {book && example(book) && <Alert component="p" variant="info" isInline title={t('wizard.pricesExample')} />}
          <p>
            <Link href="/prices">{t('price.title')}</Link>
          </p>
          {book && <Editor key={book.meta.id} book={book} beside={(draft) => <Sample book={book} draft={draft} />} />}
        </>
      );
    case 'images':
      return <ImagesStep session={session} images={there.images} />;
    case 'sizes':
      return <SizesStep flavors={there.flavors} pools={there.pools} />;
    case 'customer':
      return <CustomerStep />;
    case 'machine':
      return <MachineStep instances={there.instances} />;
  }
}

export function Setup({ session, id }: { session: Session; id: string }) {
  const { t } = useText();
  const [, go] = useLocation();
  const { there, error } = useThere(session);
  useEffect(() => {
    if (!remembered()) remember('seen');
  }, []);
  if (!there)
    return error ? (
      <PageBody title={t('setup.title')}>
        <ErrorAlert error={error} />
      </PageBody>
    ) : (
      <Loading />
    );
  const is = done(there);
  const step = steps.find((s) => s === id) ?? steps.find((s) => !is[s]) ?? steps[0];
  const after = next(step);
  const what = have(step, there);
  return (
    <PageBody title={t('setup.title')}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('wizard.help')}</p>
        <Views
          label={t('wizard.steps')}
          views={steps.map((s, i) => ({
            href: `/setup/${s}`,
            title: `${i + 1}. ${t(`setup.${s}`)}${is[s] ? ' ✓' : ''}`,
            active: s === step,
          }))}
        />
        <Card key={step}>
          <CardTitle component="h2">
            {t(`setup.${step}`)}{' '}
            {is[step] && (
              <Label color="green" icon={<CheckCircleIcon />}>
                {t('wizard.done')}
              </Label>
            )}
          </CardTitle>
          <CardBody className="basalt-stack">
            <p>{t(`wizard.${step}Help`)}</p>
            {listed.has(step) && (
              <p className="basalt-note">
                {what.length > 0 ? t('wizard.there', { what: what.slice(0, 12).join(', ') }) : t('wizard.nothing')}
              </p>
            )}
            <Body step={step} there={there} session={session} />
          </CardBody>
        </Card>
        <div className="basalt-actions">
          {after ? (
            <Button variant={is[step] ? 'primary' : 'secondary'} onClick={() => go(`/setup/${after}`)}>
              {is[step] ? t('wizard.continue') : t('wizard.skip')}
            </Button>
          ) : (
            <Button onClick={() => go('/')}>{t('wizard.finish')}</Button>
          )}
        </div>
      </div>
    </PageBody>
  );
}
