/**
 * Functions, casts and operators that users' SQL may use. All of them are in pg_catalog, which every session
 * searches first.
 *
 * A function is listed when it only computes from its arguments, the clock or a random source. Everything
 * else is refused: whatever reads or writes settings, sequences, files, large objects, catalogs, locks or
 * other sessions, sleeps, or runs SQL given as text (query_to_xml, ts_stat, ts_rewrite …).
 */
const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");

const AGGREGATE = words(`
  count sum avg min max any_value array_agg string_agg bool_and bool_or every bit_and bit_or bit_xor
  json_agg json_agg_strict jsonb_agg jsonb_agg_strict json_object_agg json_object_agg_strict json_object_agg_unique json_object_agg_unique_strict
  jsonb_object_agg jsonb_object_agg_strict jsonb_object_agg_unique jsonb_object_agg_unique_strict range_agg range_intersect_agg
  corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
  stddev stddev_pop stddev_samp variance var_pop var_samp mode percentile_cont percentile_disc`);

const WINDOW = words("row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value");

const TEXT = words(`
  ascii bit_length btrim casefold char_length character_length chr concat concat_ws convert_from convert_to crc32 crc32c decode encode format
  initcap is_normalized left length like_escape lower lpad ltrim md5 normalize octet_length overlay position quote_ident quote_literal quote_nullable
  regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr
  repeat replace reverse right rpad rtrim sha224 sha256 sha384 sha512 similar_escape similar_to_escape split_part starts_with string_to_array
  string_to_table strpos substr substring to_ascii to_bin to_hex to_oct translate unicode_assigned unistr upper
  hashtext hashtextextended get_bit get_byte set_bit set_byte bit_count`);

const NUMBER = words(`
  abs cbrt ceil ceiling degrees div erf erfc exp factorial floor gamma gcd lcm lgamma ln log log10 min_scale mod pi pow power radians random
  random_normal round scale sign sqrt trim_scale trunc width_bucket acos acosd acosh asin asind asinh atan atan2 atan2d atand atanh cos cosd cosh
  cot cotd sin sind sinh tan tand tanh`);

const TIME = words(`
  age clock_timestamp date_add date_bin date_part date_subtract date_trunc extract isfinite justify_days justify_hours justify_interval make_date
  make_interval make_time make_timestamp make_timestamptz now overlaps statement_timestamp timeofday timezone to_char to_date to_number to_timestamp
  transaction_timestamp`);

const JSON_NAMES = words(`
  array_to_json row_to_json to_json to_jsonb json_array_elements json_array_elements_text json_array_length json_build_array json_build_object json_each
  json_each_text json_extract_path json_extract_path_text json_object json_object_keys json_strip_nulls json_to_record json_to_recordset json_typeof
  jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_concat jsonb_contains jsonb_delete
  jsonb_delete_path jsonb_each jsonb_each_text jsonb_exists jsonb_exists_all jsonb_exists_any jsonb_extract_path jsonb_extract_path_text jsonb_insert
  jsonb_object jsonb_object_keys jsonb_path_exists jsonb_path_exists_tz jsonb_path_match jsonb_path_match_tz jsonb_path_query jsonb_path_query_array
  jsonb_path_query_array_tz jsonb_path_query_first jsonb_path_query_first_tz jsonb_path_query_tz jsonb_pretty jsonb_set jsonb_set_lax
  jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_typeof`);

const ARRAY = words(`
  array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position array_positions array_prepend array_remove
  array_replace array_reverse array_sample array_shuffle array_sort array_to_string array_upper cardinality generate_series generate_subscripts
  trim_array unnest`);

const OTHER = words(`
  gen_random_uuid uuidv4 uuidv7 uuid_extract_timestamp uuid_extract_version num_nonnulls num_nulls
  isempty lower_inc lower_inf upper_inc upper_inf range_merge multirange int4range int8range numrange daterange tsrange tstzrange
  int4multirange int8multirange nummultirange datemultirange tsmultirange tstzmultirange
  to_tsvector to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery ts_rank ts_rank_cd ts_headline setweight strip numnode querytree
  tsvector_to_array array_to_tsvector ts_delete ts_filter tsquery_phrase json_to_tsvector jsonb_to_tsvector
  abbrev broadcast family host hostmask inet_merge inet_same_family masklen netmask network set_masklen`);

/** Casts written as calls: `date(x)`. */
const CASTS = words(
  "text varchar bpchar int2 int4 int8 float4 float8 numeric bool date time timetz timestamp timestamptz interval jsonb json bytea",
);

export const ALLOWED_FUNCTIONS: ReadonlySet<string> = new Set([
  ...AGGREGATE,
  ...WINDOW,
  ...TEXT,
  ...NUMBER,
  ...TIME,
  ...JSON_NAMES,
  ...ARRAY,
  ...OTHER,
  ...CASTS,
]);

export const ALLOWED_TYPES: ReadonlySet<string> = new Set(
  words(`
  text varchar bpchar char bool int2 int4 int8 float4 float8 numeric date time timetz timestamp timestamptz interval json jsonb jsonpath uuid bytea
  bit varbit inet cidr macaddr macaddr8 money point line lseg box path polygon circle tsvector tsquery
  int4range int8range numrange daterange tsrange tstzrange int4multirange int8multirange nummultirange datemultirange tsmultirange tstzmultirange`),
);

/**
 * Built-in operators only compute. Operators of other schemas cannot be written: a schema before an operator
 * is refused.
 */
export const ALLOWED_OPERATORS: ReadonlySet<string> = new Set(
  words(`
  + - * / % ^ = <> != < <= > >= || |/ ||/ @ & | # ~ << >> ~~ !~~ ~~* !~~* ~ !~ ~* !~* -> ->> #> #>> #- @> <@ ? ?| ?& @? @@ @@@ && -|- &< &> |>> <<| &<| |&>
  ^@ <-> !! <<= >>= ~= ~<~ ~<=~ ~>~ ~>=~ *= *<> ## ?# ?- ?|| ?-| <^ >^ @-@ BETWEEN`).concat([
    "NOT BETWEEN",
    "BETWEEN SYMMETRIC",
    "NOT BETWEEN SYMMETRIC",
  ]),
);

export const ALLOWED_COLLATIONS: ReadonlySet<string> = new Set(["C", "POSIX", "default", "ucs_basic", "und-x-icu", "unicode", "pg_c_utf8"]);

/** CURRENT_USER and the like are left out: they reveal internals and nothing about the data. */
export const ALLOWED_VALUE_FUNCTIONS: ReadonlySet<string> = new Set([
  "SVFOP_CURRENT_DATE",
  "SVFOP_CURRENT_TIME",
  "SVFOP_CURRENT_TIME_N",
  "SVFOP_CURRENT_TIMESTAMP",
  "SVFOP_CURRENT_TIMESTAMP_N",
  "SVFOP_LOCALTIME",
  "SVFOP_LOCALTIME_N",
  "SVFOP_LOCALTIMESTAMP",
  "SVFOP_LOCALTIMESTAMP_N",
]);

/** PostgreSQL's own columns of every table, which reveal internals. No user's column has such a name. */
export const REFUSED_COLUMNS: ReadonlySet<string> = new Set(["tableoid", "xmin", "xmax", "cmin", "cmax", "ctid"]);
