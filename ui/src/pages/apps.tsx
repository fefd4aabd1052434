// The catalogue of apps.
import { Button, Card, CardBody, CardFooter, CardTitle, ToggleGroup, ToggleGroupItem } from '@patternfly/react-core';
import { CubesIcon } from '@patternfly/react-icons';
import { useLocation } from 'wouter';
import type { Schemas } from '../api/client';
import { useApps, useImages } from '../api/queries';
import { may, type Session } from '../api/session';
import { Loading } from '../parts/loading';
import { useImportImage } from '../forms/image';
import { useText, type Translation } from '../i18n';
import { useParam } from '../lib/address';
import { formatBytes } from '../lib/format';
import { imageOf } from '../lib/source';
import { AppIcon } from '../parts/app-icon';
import { ErrorAlert } from '../parts/error';
import { Empty } from '../parts/list';
import { newWithApp } from '../lib/new-instance';
import { PageBody } from '../parts/page';

const named = { system: 'app.system', workbench: 'app.workbench', inference: 'app.inference' } as const;

/** categoryName returns the name of a category; those of the included apps are translated. */
const categoryName = (t: Translation['t'], category: string) =>
  category in named ? t(named[category as keyof typeof named]) : category;

interface CardProps {
  app: Schemas['App'];
  ready: boolean;
  session: Session;
  bring: ReturnType<typeof useImportImage>;
}

function AppCard({ app, ready, session, bring }: CardProps) {
  const { t, count, language } = useText();
  const [, go] = useLocation();
  const { displayName, icon, category, version, description, needs = {}, ports, image, imageURL } = app.spec;
  const what = [
    needs.vcpus && count('inst.vcpus', needs.vcpus),
    needs.memoryBytes && formatBytes(needs.memoryBytes, language),
    needs.vramBytes && t('inst.vram', { size: formatBytes(needs.vramBytes, language) }),
  ]
    .filter(Boolean)
    .join(', ');
  return (
    <Card isFullHeight>
      <CardTitle component="h2">
        <span className="basalt-actions">
          <AppIcon icon={icon} />
          {displayName}
        </span>
      </CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">
          {category && `${categoryName(t, category)} · `}
          {t('app.version', { version })}
        </p>
        {description && <p>{description}</p>}
        {what && <p>{t('app.needs', { what })}</p>}
        {ports && ports.length > 0 && (
          <p>{t('app.serves', { ports: ports.map((p) => (p.name ? `${p.name} ${p.port}` : p.port)).join(', ') })}</p>
        )}
        {!ready && <p className="basalt-note">{t('app.waits', { image })}</p>}
      </CardBody>
      {!ready && imageURL && may(session, 'operator') && (
        <CardFooter>
          <Button
            variant="secondary"
            aria-label={`${t('app.import')}: ${image}`}
            isLoading={bring.isPending && bring.variables.name === image}
            isDisabled={bring.isPending}
            onClick={() => bring.mutate({ name: image, url: imageURL })}
          >
            {t('app.import')}
          </Button>
        </CardFooter>
      )}
      {ready && may(session, 'member') && (
        <CardFooter>
          <Button
            variant="secondary"
            aria-label={`${t('app.create')}: ${displayName}`}
            onClick={() => go(newWithApp(app.meta.name))}
          >
            {t('app.create')}
          </Button>
        </CardFooter>
      )}
    </Card>
  );
}

export function Apps({ session }: { session: Session }) {
  const { t, language } = useText();
  const [category, setCategory] = useParam('category');
  const apps = useApps();
  const images = useImages('').data?.items ?? [];
  const bring = useImportImage();
  if (apps.isPending) return <Loading />;
  // Apps that can be installed now come first.
  const ready = (a: Schemas['App']) => imageOf(a, images) !== undefined;
  const items = (apps.data?.items.filter((a) => !a.meta.deletedAt) ?? []).sort(
    (a, b) => Number(ready(b)) - Number(ready(a)),
  );
  const categories = [...new Set(items.flatMap((a) => a.spec.category || []))].sort((a, b) =>
    categoryName(t, a).localeCompare(categoryName(t, b), language),
  );
  // A category of an old address may have no apps any more.
  const shown = categories.includes(category) ? items.filter((a) => a.spec.category === category) : items;
  return (
    <PageBody title={t('app.catalogue')}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('app.catalogueHelp')}</p>
        <ErrorAlert error={apps.error} onRetry={() => void apps.refetch()} />
        <ErrorAlert error={bring.error} onClose={bring.reset} />
        {apps.data && items.length === 0 && <Empty title={t('app.empty')} help={t('app.emptyHelp')} icon={CubesIcon} />}
        {categories.length > 1 && (
          <ToggleGroup aria-label={t('cat.category')}>
            {['', ...categories].map((c) => (
              <ToggleGroupItem
                key={c}
                text={c ? categoryName(t, c) : t('app.all')}
                buttonId={`category-${c}`}
                isSelected={c === (categories.includes(category) ? category : '')}
                onChange={() => setCategory(c)}
              />
            ))}
          </ToggleGroup>
        )}
        <div className="basalt-columns">
          {shown.map((a) => (
            <AppCard key={a.meta.id} app={a} ready={ready(a)} session={session} bring={bring} />
          ))}
        </div>
      </div>
    </PageBody>
  );
}
