<?php

/**
 * A fake of the interfaces that WHMCS provides to modules, with the names and signatures
 * of its public developer documentation (class docs 8.13 to 9.1). It contains no code of
 * WHMCS.
 */

declare(strict_types=1);

namespace {
    define('WHMCS', true);
    date_default_timezone_set(getenv('BASALT_TIME_ZONE') ?: 'Europe/Berlin');

    final class ModuleLog
    {
        /** @var array<int,string> the log as WHMCS would store it, with secrets replaced */
        public static array $lines = [];
    }

    function logModuleCall($module, $action, $request, $response, $processed = '', $secrets = []): void
    {
        $text = implode("\n", array_map(static fn ($x): string => is_string($x) ? $x : print_r($x, true), [$action, $request, $response, $processed]));
        ModuleLog::$lines[] = str_replace($secrets, '****', $text);
    }
}

namespace WHMCS\UsageBilling\Contracts\Metrics {
    interface UnitInterface
    {
        public function name();
    }
    interface UsageInterface
    {
        public function value();

        public function collectedAt();

        public function startAt();

        public function endAt();
    }
    interface MetricInterface
    {
        public const TYPE_SNAPSHOT = 'snapshot';
        public const TYPE_PERIOD_DAY = 'day';
        public const TYPE_PERIOD_MONTH = 'month';

        public function systemName();

        public function displayName();

        public function type();

        public function units();

        public function usage();

        public function withUsage(?UsageInterface $usage = null);
    }
    interface ProviderInterface
    {
        public function metrics();

        public function usage();

        public function tenantUsage($tenant);
    }
}

namespace WHMCS\UsageBilling\Metrics\Units {
    class FloatingPoint implements \WHMCS\UsageBilling\Contracts\Metrics\UnitInterface
    {
        private $name;

        public function __construct($name, $singlePerUnitName = null, $pluralPerUnitName = null, $prefix = null, $suffix = null)
        {
            $this->name = $name;
        }

        public function name()
        {
            return $this->name;
        }
    }
}

namespace WHMCS\UsageBilling\Metrics {
    use WHMCS\UsageBilling\Contracts\Metrics\MetricInterface;
    use WHMCS\UsageBilling\Contracts\Metrics\UsageInterface;

    class Usage implements UsageInterface
    {
        private $all;

        public function __construct($value, $collectedAt = null, $startAt = null, $endAt = null)
        {
            $this->all = [$value, $collectedAt, $startAt, $endAt];
        }

        public function value()
        {
            return $this->all[0];
        }

        public function collectedAt()
        {
            return $this->all[1];
        }

        public function startAt()
        {
            return $this->all[2];
        }

        public function endAt()
        {
            return $this->all[3];
        }
    }

    class Metric implements MetricInterface
    {
        private $all;
        private $usage;

        public function __construct($systemName, $displayName = null, $type = null, $units = null, $usage = null)
        {
            $this->all = [$systemName, $displayName, $type, $units];
            $this->usage = $usage;
        }

        public function systemName()
        {
            return $this->all[0];
        }

        public function displayName()
        {
            return $this->all[1];
        }

        public function type()
        {
            return $this->all[2];
        }

        public function units()
        {
            return $this->all[3];
        }

        public function usage()
        {
            return $this->usage;
        }

        public function withUsage(?UsageInterface $usage = null)
        {
            $with = clone $this;
            $with->usage = $usage;
            return $with;
        }
    }
}

namespace WHMCS\Database {
    /** Tables in memory, with the part of the query builder that the module uses. It records writes. */
    final class Capsule
    {
        /** @var array<int,array<string,mixed>> */
        public static array $written = [];

        /** @var array<string,array<int,array<string,mixed>>> rows by table; those of a join have its columns as TABLE.COLUMN */
        public static array $rows = [];
        private array $where = [];
        private array $in = [];
        private string $table = '';

        public static function table(string $name): self
        {
            $query = new self();
            $query->table = $name;
            $query->where['table'] = $name;
            return $query;
        }

        public function join(string $table, string $one, string $operator, string $other): self
        {
            $this->table .= "+$table";
            return $this;
        }

        public function where(string $column, $value): self
        {
            $this->where[$column] = $value;
            return $this;
        }

        public function whereIn(string $column, array $values): self
        {
            $this->in[$column] = $values;
            return $this;
        }

        public function pluck(string $column): object
        {
            $found = array_column($this->found(), $column);
            return new class ($found) {
                public function __construct(private array $found)
                {
                }

                public function all(): array
                {
                    return $this->found;
                }
            };
        }

        public function exists(): bool
        {
            return $this->found() !== [];
        }

        private function found(): array
        {
            return array_values(array_filter(self::$rows[$this->table] ?? [], function (array $row): bool {
                foreach ($this->where as $column => $value) {
                    if ($column !== 'table' && ($row[$column] ?? null) !== $value) {
                        return false;
                    }
                }
                foreach ($this->in as $column => $values) {
                    if (!in_array($row[$column] ?? null, $values, true)) {
                        return false;
                    }
                }
                return true;
            }));
        }

        public function update(array $values): int
        {
            self::$written[] = $this->where + $values;
            return 1;
        }
    }
}

namespace {
    /** The part of a service's model that modules use. */
    final class ServiceModel
    {
        public object $serviceProperties;

        public function __construct()
        {
            $this->serviceProperties = new class {
                public array $kept = [];

                public function get(string $name)
                {
                    return $this->kept[$name] ?? '';
                }

                public function save(array $values): void
                {
                    $this->kept = $values + $this->kept;
                }
            };
        }
    }

    /** The part of WHMCS's own API and hooks that the module uses. */
    final class Installation
    {
        /** @var array<int,array<string,mixed>> parameters of module functions by service */
        public static array $services = [];

        /** @var array<string,array<int,callable>> */
        public static array $hooks = [];

        /** @var array<int,string> */
        public static array $activity = [];

        /** @var array<int,string> API commands that were called */
        public static array $called = [];
        public static string $currency = 'EUR';

        public static function sold(array $params, string $state, int $product = 1): void
        {
            self::$services[$params['serviceid']] = $params;
            $row = ['tblhosting.id' => $params['serviceid'], 'tblhosting.userid' => $params['userid'], 'tblhosting.packageid' => $product, 'tblhosting.domainstatus' => $state,
                'tblproducts.servertype' => 'basalt'];
            for ($i = 1; $i <= 11; $i++) {
                $row["tblproducts.configoption$i"] = $params["configoption$i"] ?? '';
            }
            \WHMCS\Database\Capsule::$rows['tblhosting+tblproducts'][] = $row;
        }

        public static function tell(string $hook, array $vars): void
        {
            foreach (self::$hooks[$hook] ?? [] as $do) {
                $do($vars);
            }
        }
    }

    function add_hook(string $hook, int $priority, callable $do): void
    {
        Installation::$hooks[$hook][] = $do;
    }

    function logActivity(string $words): void
    {
        Installation::$activity[] = $words;
    }

    function localAPI(string $command, array $values = []): array
    {
        Installation::$called[] = $command . ' ' . ($values['serviceid'] ?? $values['clientid'] ?? '');
        $said = static fn (string $of): array => $of === 'success' ? ['result' => 'success'] : ['result' => 'error', 'message' => $of];
        switch ($command) {
            case 'ModuleChangePackage':
                return $said(basalt_ChangePackage(Installation::$services[$values['serviceid']]));
            case 'ModuleCustom':
                return $said(('basalt_' . $values['func_name'])(Installation::$services[$values['serviceid']]));
            case 'GetClientsDetails':
                return ['result' => 'success', 'currency_code' => Installation::$currency];
            case 'AddBillableItem':
                \WHMCS\Database\Capsule::$rows['tblbillableitems'][] = ['userid' => $values['clientid'], 'description' => $values['description'], 'amount' => $values['amount']];
                return ['result' => 'success'];
        }
        return ['result' => 'error', 'message' => "Command $command Not Found"];
    }

    require_once dirname(__DIR__) . '/modules/servers/basalt/basalt.php';
    require_once dirname(__DIR__) . '/modules/servers/basalt/hooks.php';
}
