// What programs in Java do with a database: metadata, parameters of all types, results in parts, reads between BEGIN and COMMIT.

import java.sql.*;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.UUID;

public class Jdbc {
    static Connection connection;

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }

    static String rows(ResultSet rows, String... columns) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) {
            List<String> fields = new ArrayList<>();
            for (String column : columns) fields.add(rows.getString(column));
            found.add(String.join("|", fields));
        }
        return String.join(" ", found);
    }

    interface Step {
        String run() throws Exception;
    }

    static int wrong = 0;

    /** Says what is not as expected, and goes on. */
    static void equal(Step step, String expected) {
        String found;
        try {
            found = step.run();
        } catch (Exception error) {
            found = error.toString();
        }
        if (!expected.equals(found)) {
            wrong++;
            System.err.println("found " + found + "\nexpected " + expected + "\n");
        }
    }

    static void metadata() throws SQLException {
        DatabaseMetaData metadata = connection.getMetaData();
        check(metadata.getDatabaseMajorVersion() == 15, "version");
        equal(() -> rows(metadata.getTables(null, "public", "%", new String[] {"TABLE", "VIEW"}), "TABLE_NAME", "TABLE_TYPE"),
            "person|TABLE secret|TABLE typed|TABLE");
        equal(() -> rows(metadata.getTables(null, null, "per%", null), "TABLE_NAME", "TABLE_TYPE"), "person_id_idx_btree|INDEX person|TABLE");
        equal(() -> rows(metadata.getColumns(null, "public", "person", "%"), "COLUMN_NAME", "TYPE_NAME", "NULLABLE", "ORDINAL_POSITION"),
            "id|int8|0|1 name|varchar|0|2");
        equal(() -> rows(metadata.getColumns(null, null, "typed", "%"), "COLUMN_NAME", "DATA_TYPE"),
            "id|-5 flag|-7 small|5 whole|4 long|-5 large|2 ratio|8 label|12 blob|-2 uid|1111 at|93 tags|2003");
        equal(() -> rows(metadata.getPrimaryKeys(null, "public", "person"), "COLUMN_NAME", "KEY_SEQ"), "id|1");
        equal(() -> rows(metadata.getIndexInfo(null, "public", "person", false, false), "INDEX_NAME", "COLUMN_NAME", "NON_UNIQUE"),
            "person_id_idx_btree|id|f");
        equal(() -> rows(metadata.getSchemas(), "TABLE_SCHEM"), "information_schema pg_catalog public");
        equal(() -> rows(metadata.getCatalogs(), "TABLE_CAT"), "bank");
        equal(() -> rows(metadata.getTableTypes(), "TABLE_TYPE").contains("VIEW") ? "views" : "none", "views");
        equal(() -> rows(metadata.getImportedKeys(null, "public", "person"), "FKTABLE_NAME"), "");
        equal(() -> rows(metadata.getExportedKeys(null, "public", "person"), "FKTABLE_NAME"), "");
        equal(() -> rows(metadata.getFunctions(null, "public", "%"), "FUNCTION_NAME"), "");
        equal(() -> rows(metadata.getProcedures(null, "public", "%"), "PROCEDURE_NAME"), "");
        equal(() -> rows(metadata.getTablePrivileges(null, "public", "none"), "TABLE_NAME"), "");
        equal(() -> rows(metadata.getColumnPrivileges(null, "public", "none", "%"), "COLUMN_NAME"), "");
        equal(() -> rows(metadata.getBestRowIdentifier(null, "public", "person", 1, false), "COLUMN_NAME"), "id");
        equal(() -> "" + rows(metadata.getTypeInfo(), "TYPE_NAME").contains("int8"), "true");
        equal(() -> "" + metadata.getSQLKeywords().contains("explain"), "true");
        equal(() -> "" + metadata.getMaxColumnNameLength(), "63");
        equal(() -> "" + metadata.getClientInfoProperties().next(), "true");
        equal(() -> "" + metadata.getUDTs(null, null, "%", null).next(), "false");
    }

    static void parameters() throws SQLException {
        String insert = "INSERT INTO person VALUES (?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            for (int id = 0; id < 2000; id++) {
                statement.setInt(1, id);
                statement.setString(2, "O'Neil " + id);
                if (id % 500 == 0) check(statement.executeUpdate() == 1, "one row");
                else statement.addBatch();
                if (id % 500 == 499) statement.executeBatch();
            }
        }
        String typed = "SELECT id FROM typed WHERE flag = ? OR small = ? OR whole = ? OR long = ? OR large = ? OR ratio = ? OR label = ? OR blob = ? OR uid = ? OR at = ?";
        try (PreparedStatement statement = connection.prepareStatement(typed)) {
            // Often enough that the driver goes over to the binary forms.
            for (int round = 0; round < 8; round++) {
                statement.setBoolean(1, round % 2 == 0);
                statement.setShort(2, (short) -2);
                statement.setInt(3, -3);
                statement.setLong(4, -4L);
                statement.setLong(5, 5L);
                statement.setDouble(6, 0.5);
                statement.setString(7, "seven");
                statement.setBytes(8, new byte[] {8, -8});
                statement.setObject(9, UUID.fromString("00000000-0000-4000-8000-000000000009"));
                statement.setTimestamp(10, Timestamp.valueOf("2025-02-10 15:45:30.123"));
                check(!statement.executeQuery().next(), "nothing is in it");
            }
            ParameterMetaData described = statement.getParameterMetaData();
            check(described.getParameterTypeName(4).equals("int8"), "type of a parameter");
        }
        try (PreparedStatement statement = connection.prepareStatement("SELECT id, name FROM person WHERE id = ?")) {
            for (int id = 0; id < 12; id++) {
                statement.setLong(1, id);
                ResultSet rows = statement.executeQuery();
                check(rows.next() && rows.getInt(1) == id && rows.getString("name").equals("O'Neil " + id), "row " + id);
                check(!rows.next(), "one row");
            }
        }
    }

    static void parts() throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(300);
            ResultSet rows = statement.executeQuery("SELECT * FROM person");
            int count = 0;
            while (rows.next()) count++;
            check(count == 2000, "rows in parts: " + count);
        }
        connection.commit();
        try (Statement statement = connection.createStatement()) {
            check(statement.executeUpdate("DELETE FROM person") == 2000, "rows that a block deletes");
            ResultSet rows = statement.executeQuery("SELECT COUNT(*) AS n FROM person");
            check(rows.next() && rows.getInt("n") == 0, "the block sees it");
        }
        connection.rollback();
        try (PreparedStatement statement = connection.prepareStatement("INSERT INTO person VALUES (?, ?)", Statement.RETURN_GENERATED_KEYS)) {
            for (int id = 5000; id < 5003; id++) {
                statement.setLong(1, id);
                statement.setString(2, "kept");
                statement.executeUpdate();
                ResultSet keys = statement.getGeneratedKeys();
                check(keys.next() && keys.getInt("id") == id, "the row comes back");
            }
        }
        connection.commit();
        try (Statement statement = connection.createStatement()) {
            check(statement.executeUpdate("DELETE FROM person WHERE name = 'kept'") == 3, "a block was kept");
        }
        connection.commit();
        connection.setReadOnly(true);
        try (Statement statement = connection.createStatement()) {
            check(statement.executeQuery("SELECT COUNT(*) AS n FROM person").next(), "a count");
        }
        connection.commit();
        connection.setReadOnly(false);
        connection.setAutoCommit(true);
        try (Statement statement = connection.createStatement()) {
            statement.setMaxRows(10);
            ResultSet rows = statement.executeQuery("SELECT * FROM person");
            int count = 0;
            while (rows.next()) count++;
            check(count == 10, "as many as are wanted: " + count);
            check(connection.isValid(5), "it is there");
            statement.setQueryTimeout(5);
            statement.execute("SELECT id FROM person LIMIT 1");
            check(statement.executeUpdate("UPDATE person SET name = 'x' WHERE id < 5") == 5, "five");
        }
    }

    static void copies(String url, Properties properties) throws Exception {
        org.postgresql.copy.CopyManager copies = connection.unwrap(org.postgresql.PGConnection.class).getCopyAPI();
        java.io.StringWriter out = new java.io.StringWriter();
        long count = copies.copyOut("COPY (SELECT id, name FROM person WHERE id < 2) TO STDOUT WITH (FORMAT csv, HEADER)", out);
        check(count == 2 && out.toString().startsWith("id,name\n"), out.toString());
    }

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("user", "me");
        properties.setProperty("password", System.getenv("TOKEN"));
        for (String mode : new String[] {"extended", "extendedForPrepared", "simple"}) {
            properties.setProperty("preferQueryMode", mode);
            try (Connection made = DriverManager.getConnection(arguments[0], properties)) {
                connection = made;
                metadata();
                if (mode.equals("extended")) {
                    parameters();
                    parts();
                    copies(arguments[0], properties);
                }
            }
        }
        System.out.println(wrong == 0 ? "all is well" : wrong + " are wrong");
    }
}
