<?php

declare(strict_types=1);

use PHPUnit\Framework\TestCase;
use WHMCS\Database\Capsule;
use WHMCS\Module\Server\Basalt\ApiError;
use WHMCS\Module\Server\Basalt\Lang;
use WHMCS\Module\Server\Basalt\Order;

require_once __DIR__ . '/whmcs.php';

/**
 * Tests the module against a real basaltd, which billing/whmcs/whmcs_test.go starts:
 * BASALT_HOST and BASALT_PORT, a reseller's and a viewer's key, a proxy that can drop
 * responses, the flavors gpu-small, gpu-large and gpu-huge, and a public image "tiny".
 */
final class ModuleTest extends TestCase
{
    private static int $next = 100;

    protected function setUp(): void
    {
        ModuleLog::$lines = [];
        Capsule::$written = [];
        Capsule::$rows = [];
        Installation::$services = Installation::$activity = Installation::$called = [];
        Installation::$currency = 'EUR';
    }

    protected function tearDown(): void
    {
        foreach (ModuleLog::$lines as $line) {
            self::assertStringNotContainsString(getenv('BASALT_RESELLER'), $line);
            self::assertDoesNotMatchRegularExpression('/bslt_link-[0-9a-f]{12}_[0-9a-f]/', $line);
            self::assertStringNotContainsString('correct horse', $line);
        }
    }

    /** Returns the parameters that WHMCS passes to a function for a service. */
    private static function params(int $service, array $other = []): array
    {
        return $other + [
            'serverid' => 1, 'serverhostname' => getenv('BASALT_HOST'), 'serverport' => getenv('BASALT_PORT'), 'serversecure' => false,
            'serverusername' => 'boss@example.com', 'serverpassword' => '', 'serveraccesshash' => getenv('BASALT_RESELLER') . "\nportal=https://portal.example.com",
            'serviceid' => $service, 'accountid' => $service, 'domain' => '', 'username' => Order::username($service), 'password' => 'correct horse battery',
            'configoption1' => 'machine', 'configoption2' => 'gpu-small', 'configoption3' => 'tiny', 'configoption4' => '', 'configoption5' => '1', 'configoption6' => '25',
            'configoption7' => '', 'configoption8' => '', 'configoption9' => '', 'configoption10' => 'no', 'configoption11' => 'metrics', 'userid' => $service, 'configoptions' => [], 'customfields' => [],
            'clientsdetails' => ['firstname' => 'Ann', 'lastname' => 'Example', 'companyname' => '', 'email' => "client$service@example.com"],
            'model' => new ServiceModel(),
        ];
    }

    private static function proxied(array $params): array
    {
        return ['serverport' => getenv('BASALT_PROXY_PORT')] + $params;
    }

    private static function swallow(int $answers): void
    {
        file_get_contents('http://' . getenv('BASALT_HOST') . ':' . getenv('BASALT_PROXY_PORT') . "/swallow?answers=$answers");
    }

    private static function one(): array
    {
        return self::params(self::$next++);
    }

    /** Returns the services with that name, at most one. */
    private static function found(array $params): array
    {
        return iterator_to_array(basalt_client($params)->all('test', '/v1/services', ['name' => Order::name($params)]), false);
    }

    public function testCreateAndRepeat(): void
    {
        $p = self::one();
        self::assertSame('success', basalt_CreateAccount($p));
        $first = basalt_service($p);
        self::assertSame('success', basalt_CreateAccount($p));
        self::assertSame($first['meta']['id'], basalt_service($p)['meta']['id']);
        self::assertCount(1, self::found($p));
        self::assertSame(1 << 30, $first['spec']['machine']['vgpu']['vramBytes']);
        self::assertSame(25, $first['spec']['machine']['vgpu']['sharePercent']);
        self::assertSame(Order::username($p['serviceid']), $p['model']->serviceProperties->get('Username'));
        self::assertSame('success', basalt_Renew($p));
        self::assertSame('success', basalt_stop($p));
        self::assertSame('success', basalt_start($p));
        self::assertSame('success', basalt_restart($p));
    }

    public function testFiveAtOnce(): void
    {
        $p = self::one();
        $children = [];
        for ($i = 0; $i < 5; $i++) {
            $pid = pcntl_fork();
            if ($pid === 0) {
                // End like a killed process, since PHPUnit belongs to the parent.
                posix_kill(getmypid(), basalt_CreateAccount($p) === 'success' ? SIGTERM : SIGKILL);
            }
            $children[] = $pid;
        }
        foreach ($children as $pid) {
            pcntl_waitpid($pid, $status);
            self::assertSame(SIGTERM, pcntl_wtermsig($status));
        }
        self::assertCount(1, self::found($p));
        $projects = basalt_client($p)->call('test', 'GET', '/v1/projects?organization=' . self::found($p)[0]['spec']['organization']);
        self::assertCount(1, $projects['items']);
    }

    public function testSwallowedAnswer(): void
    {
        $p = self::proxied(self::one());
        self::swallow(1);
        self::assertSame('success', basalt_CreateAccount($p), 'an answer that is lost is asked for once more');
        self::assertCount(1, self::found($p));
        self::swallow(2);
        self::assertStringContainsString('safe', basalt_CreateAccount($p));
        self::assertSame('success', basalt_CreateAccount($p));
        self::assertCount(1, self::found($p));
        self::swallow(1);
        self::assertStringContainsString('safe', basalt_TerminateAccount($p));
        self::assertSame('success', basalt_TerminateAccount($p));
    }

    public function testTimeOut(): void
    {
        $p = self::proxied(self::one());
        file_get_contents('http://' . getenv('BASALT_HOST') . ':' . getenv('BASALT_PROXY_PORT') . '/hang?answers=1');
        try {
            basalt_client($p)->call('CreateAccount', 'PUT', basalt_path($p), Order::of($p), 2);
            self::fail('an answer that does not come is waited for for ever');
        } catch (ApiError $e) {
            self::assertStringContainsString('has not answered in time', $e->getMessage());
        }
        self::assertCount(1, self::found($p), 'it was done');
        self::assertSame('success', basalt_CreateAccount($p));
        self::assertCount(1, self::found($p));
    }

    public function testConsole(): void
    {
        $p = self::one();
        self::assertSame('success', basalt_CreateAccount($p));
        $page = basalt_console($p);
        self::assertSame('https://portal.example.com/#/instances/' . basalt_service($p)['spec']['instance'] . '/console', $page['vars']['console']);
        self::assertStringContainsString($page['vars']['console'], self::smarty($page['templatefile'] . '.tpl', $page['vars']));
        self::assertStringContainsString('https://portal.example.com', basalt_AdminLink($p));
        self::assertStringContainsString('https://portal.example.com', basalt_LoginLink($p));
        self::assertStringContainsString($page['vars']['console'], implode(basalt_AdminServicesTabFields($p)));
    }

    public function testSuspendTwiceAndUnsuspend(): void
    {
        $p = self::one();
        self::assertSame('success', basalt_CreateAccount($p));
        for ($i = 0; $i < 2; $i++) {
            self::assertSame('success', basalt_SuspendAccount(['suspendreason' => "Overdue\non payment"] + $p));
            self::assertSame('Suspended', basalt_service($p)['status']['phase']);
        }
        self::assertStringContainsString('Overdue on payment', basalt_service($p)['status']['reason']);
        self::assertStringContainsString('suspended', basalt_start($p));
        self::assertSame('SUSPENDED', self::account($p)['status']);
        for ($i = 0; $i < 2; $i++) {
            self::assertSame('success', basalt_UnsuspendAccount($p));
        }
        self::assertNotSame('Suspended', basalt_service($p)['status']['phase']);
        self::assertSame('ACTIVE', self::account($p)['status']);
    }

    private static function account(array $p): array
    {
        $list = basalt_ListAccounts($p);
        self::assertTrue($list['success']);
        $mine = array_column($list['accounts'], null, 'uniqueIdentifier')[Order::username($p['serviceid'])] ?? null;
        self::assertNotNull($mine);
        self::assertSame(['email', 'username', 'domain', 'uniqueIdentifier', 'product', 'primaryip', 'created', 'status'], array_keys($mine));
        return $mine;
    }

    public function testChangePackage(): void
    {
        $p = self::one();
        self::assertSame('success', basalt_CreateAccount($p));
        $before = basalt_service($p);
        self::assertSame('success', basalt_ChangePackage(['configoptions' => ['Flavor|Size' => 'gpu-large', 'VRAM' => '2']] + $p));
        $after = basalt_service($p);
        self::assertSame($before['spec']['instance'], $after['spec']['instance']);
        self::assertNotSame($before['spec']['machine']['flavor'], $after['spec']['machine']['flavor']);
        self::assertSame(2 << 30, $after['spec']['machine']['vgpu']['vramBytes']);
        // The reseller's limit is 64 vCPUs.
        $said = basalt_ChangePackage(['configoption2' => 'gpu-huge'] + $p);
        self::assertStringContainsString('quota', $said);
        self::assertStringContainsString('vcpus', $said);
        self::assertSame($after['spec'], basalt_service($p)['spec'], 'a change over the quota changes nothing');
        self::assertStringContainsString('number', basalt_ChangePackage(['configoption5' => 'much'] + $p));
        foreach (['configoption2' => 'gpu-none', 'configoption3' => 'none', 'configoption4' => 'no-pool'] as $option => $unknown) {
            $said = basalt_ChangePackage([$option => $unknown] + $p);
            self::assertStringContainsString($unknown, $said);
            self::assertStringContainsString('does not exist', $said);
        }
        self::assertStringContainsString('none', basalt_ChangePackage(['configoptions' => ['Image' => 'none']] + $p));
        self::assertSame($after['spec'], basalt_service($p)['spec'], 'what is refused changes nothing');
    }

    public function testAccountAndItsQuota(): void
    {
        $p = ['configoption1' => 'account', 'configoption2' => '', 'configoption3' => '', 'configoption8' => 'vcpus=4, memoryGiB=8'] + self::one();
        self::assertSame('success', basalt_CreateAccount($p));
        $s = basalt_service($p);
        self::assertSame('Active', $s['status']['phase']);
        self::assertSame(['memoryBytes' => 8 << 30, 'vcpus' => 4], $s['spec']['quota']);
        self::assertStringContainsString('no machine', basalt_start($p));
        $_REQUEST['basalt_quota'] = 'vcpus=6';
        basalt_AdminServicesTabFieldsSave($p);
        $_REQUEST['basalt_quota'] = 'cores=6';
        basalt_AdminServicesTabFieldsSave($p);
        unset($_REQUEST['basalt_quota']);
        self::assertSame('success', basalt_ChangePackage($p));
        self::assertSame(['vcpus' => 6], basalt_service($p)['spec']['quota']);
        self::assertStringContainsString('vcpus=6', implode(basalt_AdminServicesTabFields($p)));
    }

    public function testTerminate(): void
    {
        $absent = self::one();
        self::assertSame('success', basalt_TerminateAccount($absent));
        $p = self::one();
        self::assertSame('success', basalt_CreateAccount($p));
        self::assertSame('success', basalt_TerminateAccount($p));
        self::assertSame('success', basalt_TerminateAccount($p));
        self::assertContains(basalt_service($p)['status']['phase'], ['Terminating', 'Terminated']);
        self::assertStringContainsString('ended', basalt_Renew($p));
        for ($i = 0; basalt_service($p)['status']['phase'] !== 'Terminated'; $i++) {
            self::assertLessThan(300, $i, json_encode(basalt_service($p)['status']));
            usleep(200000);
        }
        self::assertSame('success', basalt_CreateAccount($p), 'it can be sold again');
    }

    public function testWrongTokenAndNobodyThere(): void
    {
        $p = self::one();
        $wrong = ['serveraccesshash' => 'bslt_key-000000000000_' . str_repeat('0', 64)] + $p;
        self::assertStringContainsString('basalt api-key create', basalt_CreateAccount($wrong));
        self::assertFalse(basalt_TestConnection($wrong)['success']);
        $viewer = ['serveraccesshash' => getenv('BASALT_VIEWER')] + $p;
        self::assertStringContainsString('reseller', basalt_TestConnection($viewer)['error']);
        self::assertStringContainsString('reseller', basalt_CreateAccount($viewer));
        $down = ['serverport' => '1'] + $p;
        self::assertStringContainsString('cannot be reached', basalt_CreateAccount($down));
        self::assertFalse(basalt_ListAccounts($down)['success']);
        self::assertStringContainsString('cannot be reached', basalt_ServiceSingleSignOn($down)['errorMsg']);
        $area = basalt_ClientArea($down);
        self::assertStringNotContainsString('basaltd', self::rendered($area), 'a client reads nothing of the inside');
        self::assertStringContainsString('API key', basalt_CreateAccount(['serveraccesshash' => ''] + $p));
        self::assertStringContainsString('instalation', basalt_CreateAccount(['serveraccesshash' => "k\ninstalation=x"] + $p));
        foreach (['73', '-1', 'x', ''] as $carry) {
            self::assertStringContainsString('0 to 72', basalt_CreateAccount(['serveraccesshash' => "k\ncarry=$carry"] + $p));
        }
        self::assertSame(['success' => true, 'error' => ''], basalt_TestConnection($p));
        // A page from something other than basaltd.
        $other = ['serverport' => getenv('BASALT_PROXY_PORT'), 'serverhostname' => getenv('BASALT_HOST')] + $p;
        file_get_contents('http://' . getenv('BASALT_HOST') . ':' . getenv('BASALT_PROXY_PORT') . '/html?answers=1');
        self::assertStringContainsString('not as basaltd does', basalt_TestConnection($other)['error']);
    }

    public function testSignOn(): void
    {
        $p = self::one();
        self::assertSame('success', basalt_CreateAccount($p));
        foreach ([basalt_ServiceSingleSignOn($p), basalt_AdminSingleSignOn($p)] as $sso) {
            self::assertTrue($sso['success'], $sso['errorMsg'] ?? '');
            self::assertStringStartsWith('https://portal.example.com/#/sso?token=bslt_link-', $sso['redirectTo']);
            $token = rawurldecode(substr($sso['redirectTo'], strlen('https://portal.example.com/#/sso?token=')));
            $session = basalt_client($p)->call('test', 'POST', '/v1/login/link', ['token' => $token]);
            self::assertArrayHasKey('token', $session);
            try {
                basalt_client($p)->call('test', 'POST', '/v1/login/link', ['token' => $token]);
                self::fail('a link is good twice');
            } catch (ApiError $e) {
                self::assertSame('invalid', $e->apiCode);
            }
        }
        self::assertFalse(basalt_AdminSingleSignOn(['serverusername' => ''] + $p)['success']);
        self::assertSame('success', basalt_ChangePassword($p));
        self::assertStringContainsString('10', basalt_ChangePassword(['password' => 'short'] + $p));
        $session = basalt_client($p)->call('test', 'POST', '/v1/login', ['email' => $p['clientsdetails']['email'], 'password' => $p['password'],
            'organization' => basalt_service($p)['spec']['organization']]);
        self::assertSame('admin', $session['spec']['grant']['role']);
    }

    public function testTotalsNeverFall(): void
    {
        // An account with a volume: no machine runs here, and volumes are metered without one.
        $p = ['configoption1' => 'account'] + self::one();
        $key = $p['serveraccesshash'];
        $p['serveraccesshash'] = "$key\ncarry=0"; // also on a month's last day
        self::assertSame('success', basalt_CreateAccount($p));
        basalt_client($p)->call('test', 'POST', '/v1/volumes', ['kind' => 'Volume', 'meta' => ['name' => 'data', 'project' => basalt_service($p)['spec']['project']],
            'spec' => ['sizeBytes' => 1 << 30]]);
        $tenant = Order::username($p['serviceid']);
        $provider = basalt_MetricProvider($p);
        $last = 0.0;
        $grew = 0;
        $ended = false;
        for ($i = 0; $grew < 3 || !$ended; $i++) {
            self::assertLessThan(300, $i, "disk hours $last, grown $grew times");
            $all = $provider->usage();
            self::assertArrayHasKey($tenant, $all);
            $disk = self::metric($i % 2 ? $all[$tenant] : $provider->tenantUsage($tenant), 'disk_gib_hours');
            $now = $disk->usage()->value();
            self::assertGreaterThanOrEqual($last, $now);
            $grew += $now > $last ? 1 : 0;
            $last = $now;
            if ($grew >= 2 && !$ended) {
                self::assertSame('success', basalt_TerminateAccount($p));
                $ended = true;
                $grew = max($grew, 3); // it need not grow further
            }
            usleep(200000);
        }
        // The last hours of a month count in the next: in those hours, an account that has
        // ended has no usage that counts in this month.
        $late = strtotime('first day of next month 00:00') - time() < 72 * 3600;
        $carried = basalt_MetricProvider(['serveraccesshash' => "$key\ncarry=72"] + $p)->tenantUsage($tenant);
        if ($late) {
            self::assertSame([], $carried);
        } else {
            $carried = self::metric($carried, 'disk_gib_hours')->usage();
            self::assertGreaterThanOrEqual($last, $carried->value());
            self::assertEquals($disk->usage()->startAt(), $carried->startAt());
        }
        $start = $disk->usage()->startAt();
        self::assertSame('01 00:00:00', date('d H:i:s', $start), 'the month is of this time zone');
        self::assertSame(date('Y-m-t 23:59:59'), date('Y-m-d H:i:s', $disk->usage()->endAt()));
        for ($i = 0; basalt_service($p)['status']['phase'] !== 'Terminated'; $i++) {
            self::assertLessThan(300, $i);
            usleep(200000);
        }
        self::assertGreaterThanOrEqual($last, self::metric($provider->tenantUsage($tenant), 'disk_gib_hours')->usage()->value(), 'what was deleted stays in the total');
        self::assertSame([], $provider->tenantUsage('somebody'));
    }

    private static function metric(array $metrics, string $name): object
    {
        foreach ($metrics as $m) {
            if ($m->systemName() === $name) {
                return $m;
            }
        }
        self::fail("there is no metric $name");
    }

    public function testMetricsWithoutAServer(): void
    {
        $metrics = basalt_MetricProvider([])->metrics();
        self::assertCount(11, $metrics);
        foreach ($metrics as $m) {
            self::assertSame(\WHMCS\UsageBilling\Contracts\Metrics\MetricInterface::TYPE_PERIOD_MONTH, $m->type());
        }
    }

    /** A machine is reinstalled only after its name was typed, from an offered image, and when it is stopped. */
    public function testReinstall(): void
    {
        $p = ['configoption5' => '0'] + self::one(); // the node has no GPU
        self::assertSame('success', basalt_CreateAccount($p));
        $id = basalt_service($p)['spec']['instance'];
        $instance = static fn (): array => basalt_client($p)->call('test', 'GET', "/v1/instances/$id");
        $name = basalt_service($p)['spec']['machine']['name'];
        $post = static function (array $fields) use ($p): array|string {
            $_POST = $fields;
            try {
                return basalt_reinstall($p);
            } finally {
                $_POST = [];
            }
        };
        foreach ([[], ['basalt_confirm' => 'other', 'basalt_image' => 'tiny'], ['basalt_confirm' => [$name], 'basalt_image' => 'tiny'], ['basalt_confirm' => $name, 'basalt_image' => 'none'],
            ['basalt_confirm' => $name]] as $fields) {
            $page = $post($fields);
            self::assertIsArray($page, json_encode($fields));
            $html = self::smarty($page['templatefile'] . '.tpl', ['token' => 'tok"en'] + $page['vars']);
            self::assertStringContainsString('<option value="tiny">', $html);
            self::assertStringContainsString('tok&quot;en', $html);
            self::assertStringContainsString($name, $html);
        }
        $sure = ['basalt_confirm' => $name, 'basalt_image' => 'tiny'];
        self::assertSame('success', basalt_stop($p));
        for ($i = 0; ($instance()['status']['phase'] ?? '') !== 'Stopped'; $i++) {
            self::assertLessThan(300, $i, json_encode($instance()['status'] ?? []));
            usleep(200000);
        }
        self::assertSame('success', $post($sure));
        $root = $instance()['spec']['rootVolume'] ?? '';
        self::assertStringStartsWith('vol-', $root);
        for ($i = 0; ($instance()['assignment']['rootVolume'] ?? '') !== $root; $i++) {
            self::assertLessThan(300, $i, json_encode($instance()));
            usleep(200000);
        }
        self::assertSame('success', basalt_start($p));
        self::assertStringContainsString('not stopped', $post($sure));
        self::assertSame('success', basalt_ChangePackage($p), 'what was reinstalled can change');
        $account = ['configoption1' => 'account'] + self::one();
        self::assertSame('success', basalt_CreateAccount($account));
        $page = basalt_reinstall($account);
        self::assertStringContainsString('no machine', self::smarty($page['templatefile'] . '.tpl', $page['vars']));
    }

    /** A machine is rescued with an offered medium only, and the page then offers the end of the rescue. */
    public function testRescue(): void
    {
        $p = ['configoption5' => '0'] + self::one();
        self::assertSame('success', basalt_CreateAccount($p));
        $id = basalt_service($p)['spec']['instance'];
        $rescue = static fn (): string => basalt_client($p)->call('test', 'GET', "/v1/instances/$id")['spec']['rescue'] ?? '';
        $post = static function (array $fields) use ($p): array|string {
            $_POST = $fields;
            try {
                return basalt_rescue($p);
            } finally {
                $_POST = [];
            }
        };
        self::assertArrayNotHasKey('live', basalt_ImageLoader($p), 'a medium is not an image of a disk');
        foreach ([[], ['basalt_medium' => 'none'], ['basalt_medium' => ''], ['basalt_medium' => ['live']], ['basalt_medium' => 'tiny']] as $fields) {
            $page = $post($fields);
            self::assertIsArray($page, json_encode($fields));
            $html = self::smarty($page['templatefile'] . '.tpl', ['token' => 'tok"en'] + $page['vars']);
            self::assertStringContainsString('<option value="live">', $html);
            self::assertStringNotContainsString('tiny', $html);
            self::assertSame('', $rescue());
        }
        self::assertSame('success', $post(['basalt_medium' => 'live']));
        self::assertStringStartsWith('img-', $rescue());
        $page = $post([]);
        self::assertStringContainsString('End the rescue', self::smarty($page['templatefile'] . '.tpl', $page['vars']));
        self::assertSame('success', basalt_ChangePackage($p));
        self::assertStringStartsWith('img-', $rescue(), 'a change of the package does not end the rescue');
        self::assertSame('success', $post(['basalt_medium' => '']));
        self::assertSame('', $rescue());
        $account = ['configoption1' => 'account'] + self::one();
        self::assertSame('success', basalt_CreateAccount($account));
        $page = basalt_rescue($account);
        self::assertStringContainsString('no machine', self::smarty($page['templatefile'] . '.tpl', $page['vars']));
    }

    public function testHooks(): void
    {
        $p = self::one();
        self::assertSame('success', basalt_CreateAccount($p));
        $other = self::one();
        Installation::sold($other, 'Terminated');
        $renamed = ['clientsdetails' => ['email' => 'new' . $p['serviceid'] . '@example.com'] + $p['clientsdetails']] + $p;
        Installation::sold($renamed, 'Active', 7);
        Installation::tell('ClientEdit', ['userid' => $p['userid'], 'email' => $p['clientsdetails']['email'], 'olddata' => ['email' => $p['clientsdetails']['email']]]);
        self::assertSame([], Installation::$called, 'nothing has changed');
        Installation::tell('ClientEdit', ['userid' => $p['userid'], 'email' => $renamed['clientsdetails']['email'], 'olddata' => ['email' => $p['clientsdetails']['email']]]);
        self::assertSame($renamed['clientsdetails']['email'], basalt_service($p)['spec']['email']);
        // The product has changed, and so have the service's configurable options.
        Installation::$services[$p['serviceid']] = ['configoption5' => '2'] + $renamed;
        Installation::tell('ProductEdit', ['pid' => 8]);
        self::assertSame(1 << 30, basalt_service($p)['spec']['machine']['vgpu']['vramBytes'], 'another product');
        Installation::tell('ProductEdit', ['pid' => 7]);
        self::assertSame(2 << 30, basalt_service($p)['spec']['machine']['vgpu']['vramBytes']);
        Installation::$services[$p['serviceid']] = ['configoptions' => ['VRAM' => '3']] + $renamed;
        Installation::tell('ServiceEdit', ['serviceid' => $p['serviceid']]);
        self::assertSame(3 << 30, basalt_service($p)['spec']['machine']['vgpu']['vramBytes']);
        self::assertSame([], Installation::$activity);
        Installation::$services[$p['serviceid']] = ['configoptions' => ['Flavor' => 'gpu-none']] + $renamed;
        Installation::tell('ServiceEdit', ['serviceid' => $p['serviceid']]);
        self::assertStringContainsString('gpu-none', Installation::$activity[0] ?? '', 'what fails is told');
        self::assertNotContains('ModuleChangePackage ' . $other['serviceid'], Installation::$called);
        Installation::tell('ServiceEdit', []);
        Installation::tell('ClientEdit', []);
        self::assertCount(1, Installation::$activity);
    }

    /** There is a line for each machine and one for the rest, which add up to the total; repeating it gives the same. */
    public function testLines(): void
    {
        $costs = [['key' => 'ins-1', 'name' => 'a', 'amountMicros' => 1_014_999], ['key' => 'ins-2', 'name' => 'b', 'amountMicros' => 1_014_999],
            ['key' => 'vol-1', 'name' => 'data', 'amountMicros' => 2_000], ['key' => 'ins-3', 'name' => 'c', 'amountMicros' => 0]];
        $lines = \WHMCS\Module\Server\Basalt\Lines::of('basalt7', '2026-10', 'account', '', $costs, 8_000);
        self::assertSame([['description' => 'a (ins-1), 2026-10 [basalt7]', 'cents' => 101], ['description' => 'b (ins-2), 2026-10 [basalt7]', 'cents' => 102],
            ['description' => 'Volumes, addresses, traffic and other, 2026-10 [basalt7]', 'cents' => 1]], $lines);
        self::assertSame([['description' => 'gpu, 2026-10 [basalt7]', 'cents' => 204]], \WHMCS\Module\Server\Basalt\Lines::of('basalt7', '2026-10', 'machine', 'gpu', $costs, 8_000));
        self::assertSame([], \WHMCS\Module\Server\Basalt\Lines::of('basalt7', '2026-10', 'machine', 'gpu', [], 0));
        // The month of this time zone, read when its records are complete; it includes a change of the clocks.
        foreach ([['2026-11-01T04:59:59Z', '2026-09'], ['2026-11-01T05:00:00Z', '2026-10'], ['2026-11-30T12:00:00Z', '2026-10'], ['2027-01-15T12:00:00Z', '2026-12']] as [$now, $want]) {
            [$from, $to, $month] = \WHMCS\Module\Server\Basalt\Lines::month(strtotime($now));
            self::assertSame($want, $month, $now);
            self::assertSame(["$want-01 00:00:00", '01 00:00:00'], [date('Y-m-d H:i:s', $from), date('d H:i:s', $to)]);
        }
    }

    public function testBill(): void
    {
        $p = ['configoption1' => 'account'] + self::one();
        self::assertSame('success', basalt_CreateAccount($p));
        self::assertStringContainsString('Invoice lines', basalt_bill($p));
        $p = ['configoption11' => 'machines'] + $p;
        self::assertSame('success', basalt_bill($p), 'nothing was used in the last month');
        self::assertSame([], Capsule::$rows['tblbillableitems'] ?? []);
        $costs = basalt_costs($p, basalt_service($p)['spec']['organization'], time() - 86400, time() + 1);
        self::assertSame('EUR', $costs['currency']);
        $lines = [['description' => 'a (ins-1), 2026-10 [basalt7]', 'cents' => 101], ['description' => 'rest, 2026-10 [basalt7]', 'cents' => 5]];
        for ($i = 0; $i < 2; $i++) {
            basalt_billed(7, 'EUR', $lines);
        }
        self::assertSame([['userid' => 7, 'description' => 'a (ins-1), 2026-10 [basalt7]', 'amount' => '1.01'], ['userid' => 7, 'description' => 'rest, 2026-10 [basalt7]', 'amount' => '0.05']],
            Capsule::$rows['tblbillableitems'], 'what was billed is not billed again');
        Installation::$currency = 'USD';
        try {
            basalt_billed(7, 'EUR', $lines);
            self::fail('a client of another currency is billed');
        } catch (ApiError $e) {
            self::assertStringContainsString('USD', $e->getMessage());
        }
        // The cron job also bills ended services, and only if the product is set to do so.
        Installation::sold($p, 'Terminated');
        Installation::sold(self::one(), 'Active');
        Installation::$called = [];
        Installation::tell('DailyCronJob', []);
        self::assertSame(['ModuleCustom ' . $p['serviceid']], Installation::$called);
        self::assertSame([], Installation::$activity);
    }

    /** The client's page shows machines, their usage and costs, and the chart. */
    public function testClientArea(): void
    {
        $p = ['configoption1' => 'account', 'configoption10' => 'yes'] + self::one();
        self::assertSame('success', basalt_CreateAccount($p));
        $project = basalt_service($p)['spec']['project'];
        basalt_client($p)->call('test', 'POST', '/v1/volumes', ['kind' => 'Volume', 'meta' => ['name' => 'data', 'project' => $project], 'spec' => ['sizeBytes' => 1 << 30]]);
        basalt_client($p)->call('test', 'POST', '/v1/instances', ['kind' => 'Instance', 'meta' => ['name' => 'trainer', 'project' => $project], 'spec' => ['flavor' => 'gpu-small', 'image' => 'tiny']]);
        for ($i = 0; ($area = basalt_ClientArea($p)['templateVariables']['area'])['use'] === []; $i++) {
            self::assertLessThan(300, $i, 'no use is shown');
            usleep(200000);
        }
        self::assertSame(['trainer'], array_column($area['machines'], 'name'));
        self::assertStringStartsWith('https://portal.example.com/#/instances/ins-', $area['machines'][0]['page']);
        self::assertContains('Disk GiB hours', array_column($area['use'], 'name'));
        self::assertSame('EUR', $area['costs']['currency']);
        $html = self::rendered(basalt_ClientArea($p));
        foreach (['trainer', 'Disk GiB hours', 'EUR'] as $part) {
            self::assertStringContainsString($part, $html);
        }
        self::assertNull(basalt_ClientArea(['configoption10' => 'no'] + $p)['templateVariables']['area']['costs'], 'costs are shown only where they are asked for');
        $none = basalt_ClientArea(array_diff_key($p, ['serviceid' => 0]));
        self::assertNotSame('', $none['templateVariables']['problem'], 'without a service there is nothing to show, and no warning');
        self::rendered($none);
    }

    public function testChart(): void
    {
        $chart = \WHMCS\Module\Server\Basalt\Chart::of([1 => 0.0, 2 => 12.5, 3 => 50.0], 'GPU hours by day');
        self::assertSame(['x' => '20', 'y' => '90', 'width' => '18', 'height' => '30', 'day' => '2', 'value' => '12.5'], $chart['bars'][1]);
        self::assertSame(['x' => '40', 'y' => '0', 'width' => '18', 'height' => '120', 'day' => '3', 'value' => '50'], $chart['bars'][2]);
        self::assertSame([], \WHMCS\Module\Server\Basalt\Chart::of([1 => 0.0, 2 => NAN], '')['bars']);
        $area = ['machines' => [], 'use' => [], 'costs' => null, 'chart' => $chart];
        $html = self::smarty('templates/clientarea.tpl', ['area' => $area, 'problem' => '', 'login' => '', 'words' => Lang::words('english'), 'basalt' => array_map(static fn () => '', array_flip(['phase', 'reason', 'customer', 'name', 'vram', 'addresses', 'pending', 'lastError', 'email']))]);
        self::assertStringNotContainsString('http', $html, 'nothing is loaded from elsewhere');
        self::assertSame(3, substr_count($html, '<rect '));
        self::assertStringContainsString('<title>2: 12.5</title>', $html);
    }

    /** Scripts in untrusted texts are shown as text in the page. */
    public function testNothingBecomesHTML(): void
    {
        $evil = '<script>alert(1)</script>"\'><img src=x onerror=1>';
        $p = self::one();
        $p['clientsdetails'] = ['firstname' => $evil, 'lastname' => $evil, 'companyname' => $evil, 'email' => $p['clientsdetails']['email']];
        self::assertSame('success', basalt_CreateAccount($p));
        self::assertSame('success', basalt_SuspendAccount(['suspendreason' => $evil] + $p));
        self::safe(self::rendered(basalt_ClientArea($p)));
        self::safe(implode(basalt_AdminServicesTabFields($p)), true);
        self::assertStringContainsString('&lt;script&gt;', self::rendered(basalt_ClientArea($p)));
        // Also in values that only basaltd could send.
        $vars = basalt_ClientArea($p)['templateVariables'];
        $vars['basalt'] = array_map(static fn ($v) => is_array($v) ? [$evil] : $evil, $vars['basalt']);
        $vars['words'] = array_map(static fn () => $evil, $vars['words']);
        $row = static fn (string ...$names): array => [array_fill_keys($names, $evil)];
        $vars['area'] = ['machines' => $row('name', 'phase', 'vram', 'address', 'page'), 'use' => $row('name', 'quantity'),
            'chart' => ['title' => $evil, 'width' => $evil, 'height' => $evil, 'most' => $evil, 'bars' => $row('x', 'y', 'width', 'height', 'day', 'value')],
            'costs' => ['rows' => $row('name', 'amount'), 'currency' => $evil, 'total' => $evil]];
        self::safe(self::smarty('templates/clientarea.tpl', ['login' => $evil] + $vars));
        self::safe(self::smarty('templates/clientarea.tpl', ['problem' => $evil] + $vars));
        self::safe(self::smarty('templates/reinstall.tpl', ['words' => $vars['words'], 'machine' => $evil, 'images' => [$evil], 'wrong' => true, 'here' => $evil, 'token' => $evil]));
        foreach ([true, false] as $rescued) {
            self::safe(self::smarty('templates/rescue.tpl', ['words' => $vars['words'], 'machine' => $evil, 'media' => [$evil], 'rescued' => $rescued, 'wrong' => true, 'here' => $evil, 'token' => $evil]));
        }
        self::safe(self::smarty('templates/console.tpl', ['words' => $vars['words'], 'login' => $evil, 'console' => $evil]));
        self::safe(implode(\WHMCS\Module\Server\Basalt\View::admin($evil, [], $evil)), true);
        $bad = ['spec' => ['instance' => $evil, 'organization' => $evil, 'machine' => ['name' => $evil, 'vgpu' => ['vramBytes' => 1]]],
            'status' => ['phase' => $evil, 'reason' => $evil, 'lastError' => $evil, 'pending' => $evil, 'addresses' => [$evil], 'node' => $evil]];
        self::safe(implode(\WHMCS\Module\Server\Basalt\View::admin('', $bad, 'https://x/' . $evil)), true);
    }

    private static function safe(string $html, bool $ours = false): void
    {
        self::assertStringNotContainsString('<script', $html);
        self::assertStringNotContainsString('<img', $html);
        self::assertStringNotContainsString('"\'>', $html);
    }

    private static function rendered(array $area): string
    {
        return self::smarty($area['tabOverviewReplacementTemplate'], $area['templateVariables']);
    }

    private static function smarty(string $template, array $vars): string
    {
        require_once 'smarty4/Smarty.class.php';
        $smarty = new Smarty();
        $smarty->setCompileDir(getenv('BASALT_SMARTY'));
        $smarty->assign($vars);
        return $smarty->fetch('file:' . dirname(__DIR__) . '/modules/servers/basalt/' . $template);
    }

    public function testConfiguration(): void
    {
        $options = basalt_ConfigOptions();
        self::assertCount(count(Order::OPTIONS), $options);
        $p = self::params(1);
        foreach ($options as $o) {
            if (isset($o['Loader'])) {
                self::assertNotSame([], $o['Loader']($p));
            }
        }
        self::assertArrayHasKey('gpu-small', basalt_FlavorLoader($p));
        self::assertArrayHasKey('tiny', basalt_ImageLoader($p));
        foreach (basalt_ClientAreaCustomButtonArray($p) as $f) {
            self::assertContains($f, basalt_ClientAreaAllowedFunctions());
        }
        foreach (array_merge(basalt_ClientAreaAllowedFunctions(), array_values(basalt_AdminCustomButtonArray())) as $f) {
            self::assertTrue(function_exists("basalt_$f"));
        }
        foreach (['english', 'german'] as $language) {
            $raw = require dirname(__DIR__) . "/modules/servers/basalt/lang/$language.php";
            self::assertSame(array_keys(Lang::words('english')), array_keys($raw), $language);
        }
        self::assertSame(Lang::words('english'), Lang::words('../../english'));
        self::assertIsArray(json_decode((string) file_get_contents(dirname(__DIR__) . '/modules/servers/basalt/whmcs.json'), true));
    }

    public function testUsageUpdate(): void
    {
        $p = self::one();
        self::assertSame('success', basalt_CreateAccount($p));
        basalt_UsageUpdate($p);
        $mine = array_values(array_filter(Capsule::$written, static fn (array $w): bool => $w['id'] === $p['serviceid']));
        self::assertCount(1, $mine);
        self::assertSame(1024, $mine[0]['disklimit']);
        self::assertSame(1024, $mine[0]['diskusage']);
    }
}
